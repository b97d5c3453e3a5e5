export function run() {}
export class A { go() {} }
export class B { go() {} onlyB() {} }
export class C { go() {} }
