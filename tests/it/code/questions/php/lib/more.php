<html>
<?php
define('MORE', 1);

function more(): int
{
    return MORE;
}
?>
<p><?= more() ?></p>
