// @ts-check
// One stream of events for all tabs of this origin. A browser has six connections for it, so that one tab reads the stream, which
// holds the lock, and tells the others.

/**
 * @typedef {{ kind: string, task: string | null, approval: number | null, repository?: string }} Change
 * @typedef {{ repository: string, state: string, since: string, name: string, as_of: string | null }} Standing
 * @typedef {'connecting' | 'live' | 'reconnecting' | 'stale'} State
 * @typedef {{
 *   state: State, since: number, last: string, daemon: string, page: string, repositories: Record<string, Standing>, asOf: number
 * }} Where
 * @typedef {{ is: 'where', where: Where } | { is: 'change', change: Change, last: string }
 *   | { is: 'all', of: string } | { is: 'ask' }} Told
 */

/** How long a stream may be broken before what is shown counts as old, in milliseconds. */
const STALE_AFTER = 2000;

/** How often it is looked whether the stream still beats, in milliseconds. */
const LOOK_EVERY = 500;

/** How long a stream may be silent before what is shown counts as old, in milliseconds: it beats once in a second. */
const SILENT_MAX = 3000;

/** How long to wait where a browser does not come back by itself, in milliseconds. */
const AGAIN_AFTER = 1000;

/** The change of `asOf` that one tab tells the others, in milliseconds. */
const AS_OF_STEP = 2000;

const NAME = 'provost-events';

export class Live {
  /**
   * @param {{ where: (where: Where) => void, change: (change: Change, last: string) => void, all: (of: string) => void, refused: () => void }} to
   */
  constructor(to) {
    this.to = to;
    /** @type {Where} */
    this.where = { state: 'connecting', since: Date.now(), last: '', daemon: '', page: '', repositories: {}, asOf: 0 };
    this.leads = false;
    this.timer = 0;
    this.channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(NAME) : null;
    if (this.channel) this.channel.onmessage = (message) => this.hear(message.data);
  }

  start() {
    if (!this.channel || !navigator.locks) return this.lead();
    this.channel.postMessage({ is: 'ask' });
    // Held for as long as the tab is there; then the next one leads.
    navigator.locks.request(NAME, () => new Promise(() => this.lead()));
  }

  /** @param {Told} told */
  hear(told) {
    if (told.is === 'ask') {
      if (this.leads) this.channel?.postMessage({ is: 'where', where: this.where });
    } else if (told.is === 'where') {
      this.where = told.where;
      this.to.where(this.where);
    } else if (told.is === 'change') {
      this.where.last = told.last;
      this.to.change(told.change, told.last);
    } else {
      this.to.all(told.of);
    }
  }

  /** @param {Told} told */
  tell(told) {
    this.hear(told);
    this.channel?.postMessage(told);
  }

  /** @param {State} state */
  become(state) {
    if (state === this.where.state) return;
    this.tell({ is: 'where', where: { ...this.where, state, since: Date.now() } });
  }

  /**
   * A daemon that hangs keeps the connection and says nothing: what is shown is stale then, too, until it is heard again.
   * @param {EventSource} source
   */
  listenFor(source) {
    let heard = performance.now();
    let looked = heard;
    let silent = false;
    const hear = () => {
      heard = performance.now();
      if (silent) this.become('live');
      silent = false;
    };
    for (const kind of ['hello', 'beat', 'change', 'gap', 'repository', 'database']) source.addEventListener(kind, hear);
    return setInterval(() => {
      const now = performance.now();
      // A tab that has slept itself has heard nothing meanwhile.
      if (now - looked > SILENT_MAX) heard = now;
      looked = now;
      if (this.where.state !== 'live' || now - heard < SILENT_MAX) return;
      silent = true;
      this.become('stale');
    }, LOOK_EVERY);
  }

  lead() {
    this.leads = true;
    const after = this.where.last ? `?after=${encodeURIComponent(this.where.last)}` : '';
    const source = new EventSource(`/event-stream${after}`);
    const looks = this.listenFor(source);
    source.addEventListener('hello', (event) => {
      clearTimeout(this.timer);
      this.timer = 0;
      const { daemon, page } = JSON.parse(event.data);
      const another = this.where.daemon !== daemon;
      const state = /** @type {State} */ ('live');
      const where = { ...this.where, state, since: Date.now(), last: event.lastEventId, daemon, page, asOf: 0 };
      this.tell({ is: 'where', where });
      // What was shown before is another daemon's, or was asked for before the stream began.
      if (another) this.tell({ is: 'all', of: '' });
    });
    source.addEventListener('gap', (event) => {
      this.where.last = event.lastEventId;
      this.tell({ is: 'all', of: JSON.parse(event.data).repository ?? '' });
    });
    // On the page over all repositories: how one of them stands.
    source.addEventListener('repository', (event) => {
      const standing = /** @type {Standing} */ (JSON.parse(event.data));
      const before = this.where.repositories[standing.repository];
      const repositories = { ...this.where.repositories, [standing.repository]: standing };
      this.tell({ is: 'where', where: { ...this.where, repositories } });
      if (before?.state !== standing.state) this.tell({ is: 'all', of: standing.repository });
    });
    // `asOf` is the time of the daemon's data while the database does not answer the daemon, and 0 otherwise.
    source.addEventListener('database', (event) => {
      const age = JSON.parse(event.data).age_ms;
      const asOf = age === null ? 0 : Date.now() - age;
      const was = this.where.asOf;
      if (Boolean(asOf) === Boolean(was) && Math.abs(asOf - was) < AS_OF_STEP) return;
      this.tell({ is: 'where', where: { ...this.where, asOf } });
    });
    source.addEventListener('change', (event) => {
      this.tell({ is: 'change', change: JSON.parse(event.data), last: event.lastEventId });
    });
    source.onerror = () => {
      if (this.where.state !== 'stale') this.become('reconnecting');
      this.timer ||= setTimeout(() => this.become('stale'), STALE_AFTER);
      if (source.readyState !== EventSource.CLOSED) return;
      clearInterval(looks);
      // The daemon has answered with no stream: perhaps this browser is not signed in any more.
      this.to.refused();
      setTimeout(() => this.lead(), AGAIN_AFTER);
    };
  }
}
