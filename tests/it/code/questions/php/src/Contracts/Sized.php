<?php
namespace Acme\Shop\Contracts;

interface Sized
{
}
