// Compares a restarted server with the oracle.
import type { Random } from '../../src/core/random.ts';
import { ask } from './client.ts';
import type { Oracle, Replaceable } from './oracle.ts';
import { type Site, type Tenant, TENANTS } from './site.ts';

export type Kind =
  'record' | 'removal' | 'rating' | 'turn' | 'response' | 'conversation' | 'chat' | 'key' | 'revocation';

export interface Findings {
  numChecked: number;
  /** Acknowledged and missing: one sentence each. */
  readonly lost: { readonly kind: Kind; readonly message: string }[];
  /** There and different, or never written. */
  readonly wrong: string[];
  /** Writes that were refused and are there all the same. */
  numRefusedWritten: number;
}

export const createFindings = (): Findings => ({
  numChecked: 0,
  lost: [],
  wrong: [],
  numRefusedWritten: 0,
});

/** Reports a loss once: what is gone stays gone after the next kill. */
function lose(found: Findings, kind: Kind, message: string, forget: () => void): void {
  found.lost.push({ kind, message });
  forget();
}

interface ListedRecord {
  readonly id: string;
  readonly text: string;
}

const KINDS = ['document', 'query', 'fact'];

async function listRecords(url: string, token: string): Promise<ListedRecord[]> {
  const all: ListedRecord[] = [];
  for (let after: string | undefined; ;) {
    const body = { kinds: KINDS, limit: 1000, order: 'oldest', ...(after === undefined ? {} : { after }) };
    const { status, body: page, text } = await ask(url, '/admin/memory/list', { token, body });
    if (status !== 200) throw new Error(`memory/list: ${status} ${text.slice(0, 300)}`);
    all.push(...(page['records'] as ListedRecord[]));
    if (page['next'] === null) return all;
    after = page['next'] as string;
  }
}

async function verifyRecords(url: string, site: Site, oracle: Oracle, tenant: Tenant, found: Findings): Promise<void> {
  const listed = await listRecords(url, site.tokens[tenant]);
  const there = new Map(listed.map(({ id, text }) => [id, text]));
  for (const [id, { tenant: owner, text }] of oracle.records) {
    if (owner !== tenant) continue;
    found.numChecked++;
    const stored = there.get(id);
    if (stored === undefined && oracle.refusedRemovals.has(id)) found.numRefusedWritten++;
    else if (stored === undefined) lose(found, 'record', `${id} (${text})`, () => oracle.records.delete(id));
    else if (stored !== text)
      found.wrong.push(`record ${id} is ${JSON.stringify(stored)}, was ${JSON.stringify(text)}`);
  }
  for (const [id, text] of there) {
    if (oracle.removed.has(id)) lose(found, 'removal', `${id} (${text}) is back`, () => oracle.removed.delete(id));
    else if (oracle.refusedAdds.has(text)) found.numRefusedWritten++;
    else if (!oracle.records.has(id) && !oracle.maybeRemoved.has(id) && !oracle.maybeAdded.has(text)) {
      found.wrong.push(`record ${id} (${text}) was never acknowledged to ${tenant} and never sent`);
    }
  }
}

async function verifyTurns(url: string, site: Site, oracle: Oracle, found: Findings): Promise<void> {
  for (const { id, tenant, turns, unanswered } of oracle.conversations.values()) {
    if (turns.length === 0) continue;
    const { status, text } = await ask(url, '/admin/memory/sessions/show', { token: site.tokens[tenant], body: { sessionId: id, limit: 1000 } }); // prettier-ignore
    const stored = status === 200 ? [...text.matchAll(/"(turn \d+)"/g)].map(([, turn]) => turn!) : [];
    for (const turn of turns.slice()) {
      found.numChecked++;
      const times = stored.filter((one) => one === turn).length;
      if (times === 0)
        lose(found, 'turn', `${turn} of ${id} (status ${status})`, () => turns.splice(turns.indexOf(turn), 1));
      if (times > 1) found.wrong.push(`${turn} of ${id} is there ${times} times`);
    }
    const foreign = stored.find((turn) => !turns.includes(turn) && !unanswered.has(turn));
    if (foreign !== undefined) found.wrong.push(`${foreign} of ${id} was never sent there`);
  }
}

/** Older ones are sampled: they were all looked at after their own kill. */
function sample<K, V>(map: ReadonlyMap<K, V>, numNew: number, random: Random): [K, V][] {
  const all = [...map];
  const old = all.slice(0, -numNew || undefined);
  const share = Math.min(1, 10 / Math.max(1, old.length));
  return [...old.filter(() => random.next() < share), ...all.slice(-numNew)];
}

/** An earlier acknowledged value is the loss of the later write, which must be reported; any other value is wrong. */
function compareValue(found: Findings, kind: 'rating' | 'chat', id: string, known: Replaceable, stored: unknown): void {
  if (stored === known.value || (known.maybe !== null && stored === known.maybe)) return;
  if (typeof stored === 'string' && known.earlier.has(stored)) {
    lose(found, kind, `${id} is ${stored} again, was ${known.value}`, () => (known.value = stored));
  } else found.wrong.push(`${kind} ${id} is ${String(stored)}, was ${known.value}`);
}

export interface VerifyOptions {
  readonly random: Random;
  /** Look at everything; otherwise at what is new and a sample of the rest. */
  readonly isWhole: boolean;
}

/** Everything that was acknowledged must be there, unchanged; nothing else may. */
export async function verify(
  url: string,
  site: Site,
  oracle: Oracle,
  found: Findings,
  options: VerifyOptions,
): Promise<void> {
  const { random, isWhole } = options;
  const numNew = isWhole ? Infinity : 30;
  for (const tenant of TENANTS) await verifyRecords(url, site, oracle, tenant, found);
  await verifyTurns(url, site, oracle, found);
  for (const [id, rating] of sample(oracle.ratings, numNew, random)) {
    if (rating.value === null) continue;
    const { status, body } = await ask(url, `/v1/feedback/${id}`, { token: site.tokens[rating.tenant] });
    if (status !== 200) lose(found, 'rating', `${id}: ${status}`, () => oracle.ratings.delete(id));
    else compareValue(found, 'rating', id, rating, body['verdict']);
    found.numChecked++;
  }
  for (const [id, { tenant, text }] of sample(oracle.responses, numNew, random)) {
    const { status, text: stored } = await ask(url, `/v1/responses/${id}/input_items`, { token: site.tokens[tenant] });
    found.numChecked++;
    if (status !== 200) lose(found, 'response', `${id}: ${status}`, () => oracle.responses.delete(id));
    else if (!stored.includes(`"${text}"`)) found.wrong.push(`response ${id} does not contain its input`);
  }
  for (const [id, { tenant, text }] of sample(oracle.items, numNew, random)) {
    const { status, text: stored } = await ask(url, `/v1/conversations/${id}/items`, { token: site.tokens[tenant] });
    found.numChecked++;
    if (status !== 200) lose(found, 'conversation', `${id}: ${status}`, () => oracle.items.delete(id));
    else if (!stored.includes(`"${text}"`)) found.wrong.push(`conversation ${id} does not contain its item`);
  }
  for (const [id, chat] of sample(oracle.chats, numNew, random)) {
    if (chat.value === null) continue;
    const { status, body } = await ask(url, `/v1/chats/${id}`, { token: site.tokens[chat.tenant] });
    if (status !== 200) lose(found, 'chat', `${id}: ${status}`, () => oracle.chats.delete(id));
    else compareValue(found, 'chat', id, chat, body['title']);
    found.numChecked++;
  }
  for (const [id, token] of sample(oracle.keys, numNew, random)) {
    found.numChecked++;
    const { status } = await ask(url, '/v1/whoami', { token });
    if (status !== 200) lose(found, 'key', `${id}: ${status}`, () => oracle.keys.delete(id));
  }
  for (const [id, token] of sample(oracle.revokedKeys, numNew, random)) {
    found.numChecked++;
    const { status } = await ask(url, '/v1/whoami', { token });
    if (status !== 401) lose(found, 'revocation', `${id}: ${status}`, () => oracle.revokedKeys.delete(id));
  }
}
