<?php
namespace Acme\Shop\Util;

class Log
{
    //? src/Util/functions.php:Acme.Shop.Util.shorten src/Util/functions.php:Inner.Tool.run

    public function write(string $text): void
    {
        echo shorten($text);
        \Inner\Tool::run();
    }
}
