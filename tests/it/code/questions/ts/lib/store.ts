import { log as write } from './log';

export class Store {
  private items = new Map<string, string>();
  private sink: Sink;
  constructor(sink: Sink) { this.sink = sink; }
  //? lib/store.ts:Sink.flush
  save(key: string) { this.items.set(key, key); this.sink.flush(); }
  //?
  get(key: string) { return this.items.get(key); }
  //? lib/store.ts:Store.get lib/log.ts:log
  read(key: string) { write(key); return this.get(key); }
  //? lib/store.ts:Store
  static open() { return new Store(new Elsewhere()); }
}

export class Sink {
  //? lib/log.ts:log
  flush() { write('flush'); }
  close() {}
}

export class FileSink extends Sink {
  //? lib/store.ts:Sink.close lib/store.ts:Sink.flush
  close() { super.close(); this.flush(); }
}

export const shared = new Store(new Sink());
export default shared;
