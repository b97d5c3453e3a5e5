export function log(text: string) {}
export const helper = () => 1;
export function run() {}
export function get() {}
export namespace Levels { export function parse(text: string) {} }
