<?php
namespace Acme\Shop\Util {
    //? src/Util/functions.php:Acme.Shop.Util.cut

    function shorten(string $text): string
    {
        return cut($text);
    }

    function cut(string $text): string
    {
        return substr($text, 0, 3);
    }
}

namespace Inner {
    class Tool
    {
        //? src/Util/functions.php:Acme.Shop.Util.cut

        public static function run(): void
        {
            \Acme\Shop\Util\cut('x');
        }
    }
}
