import { Ping, start } from './ping';
//? ping.ts:Ping.hit
export function pong(of: Ping) { of.hit(); }
//? ping.ts:start pong.ts:pong ping.ts:Ping
export function again() { start(); pong(new Ping()); }
