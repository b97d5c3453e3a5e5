<?php
namespace Acme\Shop\Models;

enum Suit: string
{
    case Hearts = 'H';
    case Spades = 'S';

    //? src/Models/Suit.php:Suit.first

    public static function label(): string
    {
        return self::first()->value;
    }

    public static function first(): self
    {
        return self::Hearts;
    }
}
