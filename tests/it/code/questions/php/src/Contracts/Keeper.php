<?php
namespace Acme\Shop\Contracts;

interface Keeper
{
    public function size(): int;
}
