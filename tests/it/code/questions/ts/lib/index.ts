export * from './store';
export { Cache as Memory, Worker, make } from './cache';
export * as logging from './log';
export { default as main } from './store';
