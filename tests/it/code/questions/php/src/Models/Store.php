<?php

declare(strict_types=1);

namespace Acme\Shop\Models;

use Acme\Shop\Contracts\{Keeper, Sized as HasSize};
use Acme\Shop\Util\Log;
use function Acme\Shop\Util\shorten;
use Vendor\Cache;

/**
 * Keeps things.
 */
final class Store extends Base implements Keeper, HasSize
{
    use Counts;

    private ?Item $last = null;
    private $untyped;

    //? src/Models/Base.php:Base.__construct src/Models/Item.php:Item

    public function __construct(
        private readonly Log $log,
        private Cache $cache,
    ) {
        parent::__construct('store');
        $this->untyped = new Item('a');
    }

    //? src/Util/Log.php:Log.write src/Models/Store.php:Store.check

    public function keep(Item $item): self
    {
        $this->log->write($item->name);
        $this->check($item);
        $this->last = $item;
        return $this;
    }

    //? src/Models/Item.php:Item.price src/Models/Item.php:Item.describe

    public function worth(): int
    {
        $this->cache->clear();
        return $this->last->price() + strlen($this->untyped->describe());
    }

    //? src/Models/Store.php:Store.keep src/Models/Store.php:Store.worth src/Models/Store.php:Store.make src/Models/Item.php:Item

    public static function open(): int
    {
        $store = self::make();
        return $store->keep(new Item('b'))->worth();
    }

    //? src/Models/Store.php:Store src/Util/Log.php:Log

    public static function make(): static
    {
        return new static(new Log(), new Cache());
    }

    //? src/Models/Counts.php:Counts.count src/Models/Base.php:Base.touch src/Util/functions.php:Acme.Shop.Util.shorten lib/helpers.php:helper

    public function again(): void
    {
        $this->count();
        $this->touch();
        shorten('x');
        helper();
        \strlen('x');
    }

    //? src/Models/Item.php:Item.price

    public function each(array $all): void
    {
        array_map(fn (Item $it): int => $it->price(), $all);
    }

    private function check(Item $item): void
    {
    }

    public function size(): int
    {
        return 0;
    }
}
