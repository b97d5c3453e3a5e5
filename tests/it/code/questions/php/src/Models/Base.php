<?php
namespace Acme\Shop\Models;

abstract class Base
{
    protected Item $first;

    public function __construct(protected string $name)
    {
    }

    //? src/Models/Base.php:Base.describe

    public function touch(): string
    {
        return static::describe();
    }

    public static function describe(): string
    {
        return 'base';
    }
}
