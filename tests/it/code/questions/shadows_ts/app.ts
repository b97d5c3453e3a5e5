import { A, B, run } from './core';

//?
export function parameter(A: any) { new A().go(); }
//?
export function stored(A: any) { const o = new A(); o.go(); }
//?
export function pattern({ A }: any) { new A().go(); }
//?
export function loop(all: any[]) { for (const A of all) { new A().go(); } }
//?
export function assigned(table: any) { const A = table.a; const o = new A(); o.go(); }
//?
export function hoisted(x: boolean) { if (x) { var run = (globalThis as any).run; } run(); }
//? core.ts:B core.ts:B.go
export async function importedHere() { const { B: A } = await import('./core'); new A().go(); }
//? core.ts:A core.ts:A.go
export function importedNowhereNear() { new A().go(); }
//? core.ts:A core.ts:B
export function conditional(x: boolean) { const o = x ? new A() : new B(); o.go(); }
//? core.ts:A core.ts:A.go
export function bothTheSame(x: boolean) { const o = x ? new A() : new A(); o.go(); }
//? core.ts:A core.ts:B
export function either() { const o = (new A() as any) || new B(); o.go(); }
//? core.ts:A core.ts:B
export function changed() { let o: any; o = new A(); o = new B(); o.go(); }
//? core.ts:A core.ts:A.go app.ts:make
export function typed(): void { let o: A = new A(); o = make(); o.go(); }
declare function make(): A;

export function around() { return class Nested { unusual() {} onlyB() {} }; }
export function around2() { class Nested2 { unusual2() {} } return Nested2; }
//?
export function guessed(o: any) { o.unusual(); o.unusual2(); }
//? core.ts:B.onlyB
export function guessedOfImports(o: any) { o.onlyB(); }

let cur = new A();
const kept = new A();
let later;
let typedCur: A = new A();
//? core.ts:B
export function sets() { cur = new B(); later = new B(); typedCur = new B(); }
//?
export function uses() { cur.go(); }
//? core.ts:A.go
export function usesKept() { kept.go(); }
//? core.ts:B.go
export function usesLater() { later.go(); }
//? core.ts:A.go
export function usesTyped() { typedCur.go(); }
//? core.ts:A.go
export async function usesKeptBesideImport() { const { B: A } = await import('./core'); kept.go(); }

let taken = new A();
//?
export function takes(all: any[]) { [taken] = all; }
//?
export function usesTaken() { taken.go(); }

let filled = null;
//? core.ts:A
export function fills() { filled ??= new A(); }
//? core.ts:A.go
export function usesFilled() { filled.go(); }

export class Holder {
  field = new A();
  stays = new A();
  typed: A = new A();
  //? core.ts:B
  change() { this.field = new B(); this.typed = new B(); }
  //?
  useField() { this.field.go(); }
  //? core.ts:A.go
  useStays() { this.stays.go(); }
  //? core.ts:A.go
  useTyped() { this.typed.go(); }
}

export class Maker {
  //?
  constructor(A: any) { this.made = new A(); }
  //?
  use() { this.made.go(); }
}
