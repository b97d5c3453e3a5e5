<?php
require_once __DIR__ . '/more.php';

//? lib/more.php:more src/Models/Store.php:Store.size src/Models/Store.php:Store.make

function helper(): int
{
    more();
    $store = \Acme\Shop\Models\Store::make();
    return $store->size();
}
