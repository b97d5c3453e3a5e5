<?php
namespace Acme\Shop\Models;

trait Counts
{
    private int $counted = 0;

    //? src/Models/Counts.php:Counts.add

    public function count(): int
    {
        return $this->add(1);
    }

    private function add(int $n): int
    {
        return $this->counted += $n;
    }
}
