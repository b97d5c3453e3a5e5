import { A, B, run } from './core';

//?
export const arrow = (A: any) => new A().go();
//?
export const short = (run: any) => run();
//?
export function defaulted(run = () => 1) { run(); }
//?
export function rest(...run: any[]) { (run as any)(); }
//?
export function caught() { try { } catch (A: any) { new A().go(); } }
//?
export function forLet(all: any) { for (let A = all.a; A; A = A.next) { new A().go(); } }
//?
export function unpacked(pair: any) { const [A, run] = pair; new A().go(); run(); }
//? core.ts:A core.ts:A.go more.ts:nested.inner
export function nested() { function inner(A: any) { return A; } inner(1); new A().go(); }
//?
export function closesOver(A: any) {
  //?
  function inner() { new A().go(); }
  return inner;
}
//? core.ts:A core.ts:B
export function inBrackets(x: boolean) { (x ? new A() : new B()).go(); }
//? core.ts:A
export function changedInside() {
  let o = new A();
  //? core.ts:B
  function inner() { o = new B() as any; }
  o.go();
}
//? core.ts:A core.ts:A.go
export function nullFirst(x: boolean) { const o = x ? new A() : null; o!.go(); }
//?
export function classParameter() { return class { constructor(A: any) { new A().go(); } }; }
export const object = {
  //?
  method(A: any) { new A().go(); },
};
export namespace Space {
  let own = new A();
  //? core.ts:B
  export function change() { own = new B() as any; }
}
export class Fields {
  private a: any = new A();
  b = new A();
  //? core.ts:B
  set() { this.b = new B() as any; }
  //?
  useAny() { this.a.go(); }
  //?
  useB() { const it = this.b; it.go(); }
}
