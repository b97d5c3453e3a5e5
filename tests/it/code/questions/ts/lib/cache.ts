import type { Store } from './store';

export class Cache {
  //?
  get(key: string) { return key; }
  run() {}
  clear() {}
  //? lib/store.ts:Store.read
  fill(from: Store) { return from.read('a'); }
}

export class Worker {
  run() {}
  stop() {}
  clear() {}
}

export interface Job { run(): void; }

export function make(): Cache { return new Cache(); }
