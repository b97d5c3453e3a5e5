import { Store, Sink, FileSink, shared } from './lib/store';
import { Cache, Worker, make, Job } from './lib/cache';
import { log, helper, run, get, Levels } from './lib/log';
import * as store from './lib/store';
import whole from './lib/store';
import { Memory, logging, main, Worker as W } from './lib';
import { Client } from 'some-client';

//? lib/log.ts:log
export function direct() { log('a'); }
//? lib/cache.ts:make
export function second() { make(); }
//? lib/log.ts:helper
export function constant() { helper(); }
//? lib/log.ts:Levels.parse
export function space() { Levels.parse('info'); }
//? lib/store.ts:Store
export function through() { return new store.Store(new Client()); }
//? lib/store.ts:Store.open
export function statics() { Store.open(); }
//? lib/store.ts:Store.open
export function staticsOfModule() { store.Store.open(); }
//? lib/cache.ts:Cache
export function renamed() { new Memory(); }
//? lib/log.ts:log
export function grouped() { logging.log('x'); }
//? lib/store.ts:Store.read
export function instance(s: Store) { s.read('k'); }
//? lib/cache.ts:Worker lib/cache.ts:Worker.run
export function made() { const w = new Worker(); w.run(); }
//? lib/cache.ts:Cache lib/cache.ts:Cache.run
export function madeOther() { const w = new Cache(); w.run(); }
//? lib/cache.ts:Cache lib/cache.ts:Cache.get
export function madeGet() { const c = new Memory(); return c.get('a'); }
//?
export function mapGet() { const m = new Map<string, string>(); return m.get('a'); }
//?
export function mapParameter(m: Map<string, string>) { return m.get('a'); }
//?
export function arrays(list: string[]) { list.push('a'); return list.map((it) => it).join(','); }
//?
export function foreign(c: Client) { c.run(); c.get('a'); }
//?
export function foreignMade() { const c = new Client(); c.run(); }
//?
export function shadowedByParameter(log: (t: string) => void) { log('a'); }
//?
export function shadowedByConstant() { const helper = window.helper; helper(); }
//?
export function shadowedInside(list: any[]) { list.forEach((run) => run()); }
//? lib/log.ts:run
export function shadowedElsewhere(list: any[]) { list.forEach((run) => run); run(); }
//?
export function shadowedByPattern({ get }: { get: () => void }) { get(); }
//?
export function shadowedByCatch() { try { window.a(); } catch (log) { log(); } }
//? app.ts:shadowedByNested.log
export function shadowedByNested() { function log() {} log(); }
//? lib/store.ts:Store.read
export function exportedInstance() { shared.read('a'); }
//? lib/store.ts:Store.read
export function defaultInstance() { whole.read('a'); }
//? lib/store.ts:Store.save
export function passedOnInstance() { main.save('a'); }
//? lib/store.ts:Store.get
export function instanceOfModule() { store.shared.get('a'); }
//? lib/store.ts:Sink.flush lib/store.ts:FileSink
export function inherited() { const f = new FileSink(); f.flush(); }
//? lib/store.ts:FileSink.close lib/store.ts:FileSink
export function overridden() { new FileSink().close(); }
//? lib/cache.ts:Worker.stop
export function optional(w?: Worker | null) { w?.stop(); }
//? lib/cache.ts:Worker.clear
export function cast(w: unknown) { (w as Worker).clear(); }
//? lib/cache.ts:Worker lib/cache.ts:Worker.clear
export function assigned() { let w; w = new W(); w.clear(); }
//? lib/cache.ts:Worker lib/cache.ts:Cache
export function twoTypes(b: boolean) { let w = new Worker() as any; w = new Cache(); w.clear(); }
//? lib/store.ts:Store.read
export const arrow = (s: Store) => s.read('a');
//? lib/store.ts:Store.read
export function inCallback(all: Store[]) { all.forEach((s: Store) => s.read('x')); }
//? lib/log.ts:log
export async function dynamic() { const { log } = await import('./lib/log'); log('x'); }
//? lib/log.ts:run
export async function dynamicModule() { const it = await import('./lib/log'); it.run(); }
//? lib/cache.ts:make
export function required() { const { make } = require('./lib/cache'); make(); }

export class Service {
  private cache: Cache = new Cache();
  worker = new Worker();
  constructor(private readonly store: Store, plain: Sink) { this.sink = plain; }
  sink: Sink;
  //? lib/cache.ts:Cache.get
  byField() { return this.cache.get('a'); }
  //? lib/cache.ts:Worker.run
  byInitialiser() { this.worker.run(); }
  //? lib/store.ts:Store.read
  byParameterProperty() { this.store.read('a'); }
  //? lib/store.ts:Sink.flush
  byAssignedField() { this.sink.flush(); }
  //? lib/log.ts:log app.ts:Service.byField
  mixed() { log('x'); this.byField(); }
  //? lib/log.ts:run
  run() { run(); }
}
