import { A, B } from './core';
export let shared = new A();
export const fixed = new A();
//? core.ts:B
export function change() { shared = new B(); }
