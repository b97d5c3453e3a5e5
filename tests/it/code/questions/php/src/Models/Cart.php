<?php
namespace Acme\Shop\Models;

class Cart extends Base
{
    //? src/Models/Item.php:Item.price

    public function total(): int
    {
        return $this->first->price();
    }

    //? src/Models/Store.php:Store.open src/Models/Store.php:Store.make src/Models/Store.php:Store.worth

    public function check(): int
    {
        Store::open();
        return Store::make()->worth();
    }

    //? src/Models/Item.php:Item.price

    public function either(?Item $one, Item|null $two): int
    {
        try {
            return $one?->price() ?? $two->price();
        } catch (\RuntimeException $e) {
            return $e->getCode();
        }
    }
}
