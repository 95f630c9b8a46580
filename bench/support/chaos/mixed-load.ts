import { createRandom, type Random } from '../../../src/core/random.ts';
import { type BalancedClient, createBalancedClient, NoReply, type Reply } from './client.ts';

/** What the load has seen, and everything that was acknowledged. */
export interface Seen {
  numRequests: number;
  numAcknowledged: number;
  numMoved: number;
  /** Streams that began and ended with an error event, and those whose gateway was killed. */
  numEndedWithError: number;
  numCut: number;
  /** Writes that were refused with a clear error and a hint to try again, and those whose outcome the error calls unknown. */
  numRefusedWrites: number;
  numUnknownWrites: number;
  readonly failedUnsent: string[];
  readonly wrong: string[];
  readonly records: Map<string, string>;
  readonly turns: Map<string, string[]>;
  readonly ratings: Map<string, string>;
  readonly responses: Map<string, string>;
}

export const createSeen = (): Seen => ({
  numRequests: 0,
  numAcknowledged: 0,
  numMoved: 0,
  numEndedWithError: 0,
  numCut: 0,
  numRefusedWrites: 0,
  numUnknownWrites: 0,
  failedUnsent: [],
  wrong: [],
  records: new Map(),
  turns: new Map(),
  ratings: new Map(),
  responses: new Map(),
});

/** By prompt. */
export type Expected = ReadonlyMap<string, string>;

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random.next() * items.length)]!;
const NUM_TOKENS = 16;
/** Between two requests of a client. */
const THINK_MS = 60;
const MAX_TURNS = 10;

export const questionOf = (prompt: string): object => ({ model: 'm', messages: [{ role: 'user', content: prompt }], max_tokens: NUM_TOKENS, temperature: 0, ignore_eos: true }); // prettier-ignore

interface Choice {
  readonly message?: { readonly content: string };
  readonly delta?: { readonly content?: string };
}

export const contentOf = (text: string): string => (JSON.parse(text) as { choices: Choice[] }).choices[0]!.message!.content; // prettier-ignore

interface LoadOptions {
  readonly gateways: readonly string[];
  readonly expected: Expected;
  readonly seed: number;
  readonly numClients: number;
  readonly signal: AbortSignal;
}

/** Clients that chat, talk in sessions, and write records, ratings and responses, until `signal`. */
export async function runMixedLoad({ gateways, expected, seed, numClients, signal }: LoadOptions): Promise<Seen> {
  const seen = createSeen();
  const prompts = [...expected.keys()];
  let number = 0;

  async function runClient(index: number): Promise<void> {
    const random = createRandom(seed * 1000 + index);
    const client: BalancedClient = createBalancedClient(gateways, random);
    /** Answers of this client that can be rated. */
    const answered: string[] = [];
    let session = { id: `session-${index}-0`, numTurns: 0 };

    /** Null: it failed before its first byte, which is counted. */
    async function ask(name: string, path: string, body: object): Promise<Reply | null> {
      seen.numRequests++;
      try {
        return await client.ask(path, body);
      } catch (error) {
        if (!(error instanceof NoReply)) throw error;
        seen.failedUnsent.push(`${name}: no reply: ${error.message}`);
        return null;
      }
    }

    /** Whether a write was acknowledged; every other outcome is counted. */
    function isAcknowledged(name: string, { status, text, broken }: Reply): boolean {
      if (broken !== null) {
        seen.numCut++;
        return false;
      }
      if (status === 200) {
        seen.numAcknowledged++;
        return true;
      }
      if (/may have taken effect|it is unknown whether/.test(text)) seen.numUnknownWrites++;
      else if (status === 503 && !/none of \d+ nodes/.test(text)) seen.numRefusedWrites++;
      else seen.failedUnsent.push(`${name}: ${status} ${text.slice(0, 300)}`);
      return false;
    }

    async function chat(): Promise<void> {
      const prompt = pick(random, prompts);
      const reply = await ask('chat', '/v1/chat/completions', questionOf(prompt));
      if (reply === null) return;
      if (reply.broken !== null) seen.numCut++;
      else if (reply.status !== 200) seen.failedUnsent.push(`chat: ${reply.status} ${reply.text.slice(0, 300)}`);
      else {
        answered.push(reply.id!.replace('chatcmpl-', ''));
        compare(prompt, contentOf(reply.text), true);
      }
    }

    function compare(prompt: string, content: string, isWhole: boolean): void {
      const right = expected.get(prompt)!;
      if (isWhole ? content === right : right.startsWith(content)) return;
      seen.wrong.push(`${JSON.stringify(prompt)} was answered with ${JSON.stringify(content)}, not ${JSON.stringify(right)}`); // prettier-ignore
    }

    async function stream(): Promise<void> {
      const prompt = pick(random, prompts);
      const reply = await ask('stream', '/v1/chat/completions', { ...questionOf(prompt), stream: true });
      if (reply === null) return;
      if (reply.status !== 200) {
        if (reply.broken === null) seen.failedUnsent.push(`stream: ${reply.status} ${reply.text.slice(0, 300)}`);
        else seen.numCut++;
        return;
      }
      const events = reply.text.split('\n\n').filter((event) => event.startsWith('data: '));
      // Of a connection that broke, the last event may be half.
      const whole = reply.broken === null ? events : reply.text.split('\n\n').slice(0, -1).filter((event) => event.startsWith('data: ')); // prettier-ignore
      const parsed = whole.filter((event) => event !== 'data: [DONE]').map((event) => JSON.parse(event.slice(6)) as { choices?: Choice[]; error?: object }); // prettier-ignore
      compare(prompt, parsed.map(({ choices }) => choices?.[0]?.delta?.content ?? '').join(''), whole.at(-1) === 'data: [DONE]'); // prettier-ignore
      if (whole.at(-1) === 'data: [DONE]') answered.push(reply.id!.replace('chatcmpl-', ''));
      else if (reply.broken !== null) seen.numCut++;
      else if (parsed.at(-1)?.error !== undefined) seen.numEndedWithError++;
      else seen.wrong.push(`a stream ended without an end or an error: ${reply.text.slice(-200)}`);
    }

    async function add(): Promise<void> {
      const text = `record ${++number} of client ${index}`;
      const reply = await ask('add', '/admin/memory/add', { text });
      if (reply !== null && isAcknowledged('add', reply)) seen.records.set(reply.id!, text);
    }

    async function talk(): Promise<void> {
      if (session.numTurns >= MAX_TURNS) session = { id: `session-${index}-${++number}`, numTurns: 0 };
      const text = `turn ${++number} of client ${index}`;
      const { id } = session;
      session.numTurns++;
      const reply = await ask('talk', '/v1/chat/completions', { ...questionOf(text), max_tokens: 3, session: id });
      if (reply !== null && isAcknowledged('talk', reply)) seen.turns.set(id, [...(seen.turns.get(id) ?? []), text]);
    }

    async function rate(): Promise<void> {
      const id = answered.shift();
      if (id === undefined) return chat();
      const thumbs = random.next() < 0.5 ? 'up' : 'down';
      const reply = await ask('rate', '/v1/feedback', { request_id: id, thumbs });
      // The answers of a killed node are known to nobody if it had not yet written their audit entries.
      if (reply === null || (reply.status === 404 && reply.text.includes('request_not_found'))) return;
      if (isAcknowledged('rate', reply)) seen.ratings.set(id, (JSON.parse(reply.text) as { verdict: string }).verdict);
    }

    async function respond(): Promise<void> {
      const text = `input ${++number} of client ${index}`;
      const reply = await ask('respond', '/v1/responses', { model: 'm', input: text, max_output_tokens: 3, store: true }); // prettier-ignore
      if (reply !== null && isAcknowledged('respond', reply) && (JSON.parse(reply.text) as { store: boolean }).store) seen.responses.set(reply.id!, text); // prettier-ignore
    }

    const works = [chat, chat, chat, stream, stream, stream, add, add, talk, rate, respond];
    while (!signal.aborted) {
      await pick(random, works)();
      await new Promise((resolve) => setTimeout(resolve, THINK_MS));
    }
    seen.numMoved += client.numMoved;
  }

  await Promise.all(Array.from({ length: numClients }, (_, index) => runClient(index)));
  return seen;
}
