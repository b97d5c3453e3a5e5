<?php
namespace Acme\Shop\Models;

use Acme\Shop\Models as Own;

class Item
{
    public function __construct(public string $name)
    {
    }

    public function price(): int
    {
        return 1;
    }

    //? src/Models/Suit.php:Suit.label

    public function describe(): string
    {
        return Suit::Hearts->name . Suit::label();
    }

    //? src/Models/Item.php:Item src/Models/Item.php:Item.price

    public function copy(): int
    {
        $made = new Own\Item('x');
        $other = clone $made;
        return $other->price();
    }

    public function make(): object
    {
        $found = new class {
            public function look(): int
            {
                return 1;
            }

            //? src/Models/Item.php:Item.make.found.look

            public function twice(): int
            {
                return $this->look() * 2;
            }
        };
        return $found;
    }
}
