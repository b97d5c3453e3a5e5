# A notification hook for Windows: shows what happened to a task, then waits until whoever was notified acknowledges
# it. In provost.toml:
#
#   [hooks.notify]
#   command = 'C:\path\to\notify-ack.ps1'
#
# Ends with 0 when it was acknowledged and with 1 when it was not. ACK_TIMEOUT is how many seconds it waits (10),
# NOTIFY_LOG a file that gets a line for each notification and for what came of it.
$ErrorActionPreference = 'Stop'
$seconds = if ($env:ACK_TIMEOUT) { [int]$env:ACK_TIMEOUT } else { 10 }

# On one line: what an agent has written must not look like a line of ours.
function Log([string]$text) {
    if ($env:NOTIFY_LOG) { Add-Content -LiteralPath $env:NOTIFY_LOG -Value ($text -replace '\p{Cc}', ' ') }
}

# The pipe sends one byte, 1, with the ACK. No pipe, or one that ends without it, leaves the marker to be looked for.
function Wait-Pipe([string]$address, [datetime]$until) {
    $name = $address -replace '^\\\\\.\\pipe\\', ''
    $pipe = [System.IO.Pipes.NamedPipeClientStream]::new('.', $name, [System.IO.Pipes.PipeDirection]::In,
        [System.IO.Pipes.PipeOptions]::Asynchronous)
    try {
        $pipe.Connect(1000)
        $byte = [byte[]]::new(1)
        $read = $pipe.ReadAsync($byte, 0, 1)
        $left = [int][Math]::Max(0, ($until - [datetime]::UtcNow).TotalMilliseconds)
        return $read.Wait($left) -and $read.Result -eq 1 -and $byte[0] -eq 1
    } catch [System.TimeoutException], [System.IO.IOException], [System.AggregateException] {
        return $false
    } finally {
        $pipe.Dispose()
    }
}

function Wait-Marker([string]$marker, [datetime]$until) {
    while (-not (Test-Path -LiteralPath $marker -PathType Leaf)) {
        if ([datetime]::UtcNow -ge $until) { return $false }
        Start-Sleep -Milliseconds 200
    }
    return $true
}

$until = [datetime]::UtcNow.AddSeconds($seconds)
Log "$env:PROVOST_EFFECT_ID $env:DEVIT_NOTIFY_TASK_ID $env:DEVIT_NOTIFY_STATUS $env:DEVIT_NOTIFY_SUMMARY"
$acknowledged = $env:DEVIT_ACK_PIPE -and (Wait-Pipe $env:DEVIT_ACK_PIPE $until)
if (-not $acknowledged) { $acknowledged = Wait-Marker $env:DEVIT_ACK_MARKER $until }
if ($acknowledged) {
    Log "$env:PROVOST_EFFECT_ID acknowledged"
    exit 0
}
Log "$env:PROVOST_EFFECT_ID not acknowledged"
exit 1
