function run() {}
class A { go() {} }

//? core.ts:run
export async function importedHere() { const { run } = await import('./core'); run(); }
//? core.ts:run
export function requiredHere() { const { run } = require('./core'); run(); }
//? core.ts:A core.ts:A.go
export async function classImportedHere() { const { A } = await import('./core'); new A().go(); }
//? core.ts:run
export async function moduleImportedHere() { const run = await import('./core'); run.run(); }
//? beside.ts:run
export function modulesOwn() { run(); }
//? core.ts:run
export async function around() {
  const { run } = await import('./core');
  //? core.ts:run
  function inner() { run(); }
  run();
}
//? beside.ts:defined.run
export function defined() { function run() {} run(); }
