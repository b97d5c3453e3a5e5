// @ts-check
// The list of events can be held: what happens meanwhile is counted, and shown when its reader goes on.

import { make, say } from './dom.js';

export class Hold {
  /** @param {() => void} goOn asks for the view again */
  constructor(goOn) {
    this.goOn = goOn;
    this.on = false;
    this.since = 0;
    this.button = make('button', { type: 'button', 'data-does': 'hold', 'aria-pressed': 'false' });
    this.button.onclick = () => this.turn();
    this.name();
  }

  /** Whether a change is only counted. */
  counts() {
    if (!this.on) return false;
    this.since += 1;
    this.name();
    return true;
  }

  turn() {
    this.on = !this.on;
    this.since = 0;
    this.name();
    say(this.on ? 'Held: new events are counted.' : 'Live again.');
    if (!this.on) this.goOn();
  }

  name() {
    this.button.setAttribute('aria-pressed', String(this.on));
    this.button.textContent = this.on ? `Held, ${this.since} since: go on` : 'Hold the list';
  }
}
