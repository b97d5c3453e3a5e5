import { pong } from './pong';
export class Ping {
  //? pong.ts:pong
  hit() { pong(this); }
}
//? ping.ts:Ping ping.ts:Ping.hit
export function start() { const p = new Ping(); p.hit(); }
