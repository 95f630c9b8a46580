// Clients that stream, talk in sessions, add and remove records, rate, store chats and manage keys, until they are stopped or the
// server is gone.
import { type Random } from '../../src/core/random.ts';
import { type Answer, ask, stream } from './client.ts';
import { acknowledge, type Conversation, type Oracle } from './oracle.ts';
import { type Site, type Tenant, TENANTS } from './site.ts';

export interface LoadContext {
  readonly url: string;
  readonly site: Site;
  readonly oracle: Oracle;
  readonly random: Random;
  /** Unique in a run, so that texts are. */
  readonly nextNumber: () => number;
  /** Refusals by what was asked and their status, and answers that make no sense. */
  readonly refusals: Map<string, number>;
}

const pick = <T>(random: Random, items: readonly T[]): T | undefined => items[Math.floor(random.next() * items.length)];
const MAX_TURNS = 8;

/** Runs an exchange; returns null if it was refused. A lost connection is thrown. */
async function write(context: LoadContext, name: string, answer: Promise<Answer>): Promise<Answer | null> {
  const { status, body, ...rest } = await answer;
  if (status >= 200 && status < 300) {
    context.oracle.numAcknowledged++;
    return { status, body, ...rest };
  }
  const key = `${name} ${status}`;
  context.refusals.set(key, (context.refusals.get(key) ?? 0) + 1);
  return null;
}

type Work = (context: LoadContext, tenant: Tenant, token: string) => Promise<void>;

const add: Work = async (context, tenant, token) => {
  const { oracle } = context;
  const text = `record ${context.nextNumber()} of ${tenant}`;
  oracle.maybeAdded.add(text);
  const answer = await write(context, 'add', ask(context.url, '/admin/memory/add', { token, body: { text } }));
  oracle.maybeAdded.delete(text);
  if (answer === null) oracle.refusedAdds.add(text);
  else oracle.records.set(answer.body['id'] as string, { tenant, text });
};

const remove: Work = async (context, tenant, token) => {
  const { oracle, random } = context;
  const own = [...oracle.records].filter(([, record]) => record.tenant === tenant).map(([id]) => id);
  const id = pick(random, own);
  if (id === undefined) return;
  const record = oracle.records.get(id)!;
  oracle.records.delete(id);
  oracle.maybeRemoved.add(id);
  const answer = await write(context, 'remove', ask(context.url, '/admin/memory/remove', { token, body: { ids: [id] } })); // prettier-ignore
  oracle.maybeRemoved.delete(id);
  if (answer !== null) oracle.removed.add(id);
  else {
    oracle.records.set(id, record);
    oracle.refusedRemovals.add(id);
  }
};

const chat: Work = async (context, tenant, token) => {
  const { url, site, oracle } = context;
  const body = { model: site.modelName, messages: [{ role: 'user', content: `question ${context.nextNumber()}` }], max_tokens: 4, seed: 1 }; // prettier-ignore
  const { status, body: answer } = await ask(url, '/v1/chat/completions', { token, body });
  if (status === 200) oracle.rateable.push({ tenant, id: String(answer['id']).replace('chatcmpl-', '') });
};

const streamed: Work = async ({ url, site, oracle, nextNumber }, tenant, token) => {
  const body = { model: site.modelName, messages: [{ role: 'user', content: `tell me ${nextNumber()}` }], max_tokens: 24, seed: 1, ignore_eos: true, stream: true }; // prettier-ignore
  const { id, isWhole } = await stream(url, '/v1/chat/completions', { token, body });
  if (isWhole && id !== null) oracle.rateable.push({ tenant, id: id.replace('chatcmpl-', '') });
};

/** Of a receipt, by the rating. */
/** The verdict on an answer that nobody has rated: if it is back, the rating is lost. */
const UNRATED = 'unknown';
const VERDICTS = { up: 'success', down: 'failure' } as const;

const rate: Work = async (context, tenant, token) => {
  const { url, oracle, random } = context;
  const candidate = pick(random, oracle.rateable.filter((one) => one.tenant === tenant).slice(-20));
  if (candidate === undefined) return;
  // One at a time: of two ratings at once, the order of the answers is not that of the writes.
  oracle.rateable.splice(oracle.rateable.indexOf(candidate), 1);
  const { id } = candidate;
  const thumbs = random.next() < 0.5 ? 'up' : 'down';
  const rating = oracle.ratings.get(id) ?? { tenant, value: null, earlier: new Set([UNRATED]), maybe: null };
  // Before the answer: the server may have taken it even if the answer never comes.
  rating.maybe = VERDICTS[thumbs];
  oracle.ratings.set(id, rating);
  const answer = await write(context, 'rate', ask(url, '/v1/feedback', { token, body: { request_id: id, thumbs } }));
  if (answer !== null) acknowledge(rating, String(answer.body['verdict']));
  else rating.maybe = null;
  oracle.rateable.push(candidate);
};

const talk: Work = async (context, tenant, token) => {
  const { url, site, oracle, random, nextNumber } = context;
  let conversation: Conversation | undefined = [...oracle.conversations.values()].findLast(
    (one) => one.tenant === tenant && one.turns.length < MAX_TURNS && one.unanswered.size === 0,
  );
  if (conversation === undefined) {
    const id = `talk-${tenant}-${nextNumber()}`;
    conversation = { tenant, id, turns: [], unanswered: new Set() };
    oracle.conversations.set(id, conversation);
  }
  const text = `turn ${nextNumber()}`;
  conversation.unanswered.add(text);
  const isStreamed = random.next() < 0.5;
  const body = { model: site.modelName, messages: [{ role: 'user', content: text }], session: conversation.id, max_tokens: 3, seed: 1, stream: isStreamed }; // prettier-ignore
  if (isStreamed) {
    const { isWhole } = await stream(url, '/v1/chat/completions', { token, body });
    if (!isWhole) return;
  } else if ((await write(context, 'talk', ask(url, '/v1/chat/completions', { token, body }))) === null) return;
  conversation.unanswered.delete(text);
  conversation.turns.push(text);
};

const converse: Work = async (context, tenant, token) => {
  const text = `item ${context.nextNumber()}`;
  const body = { items: [{ type: 'message', role: 'user', content: text }] };
  const answer = await write(context, 'converse', ask(context.url, '/v1/conversations', { token, body }));
  if (answer !== null) context.oracle.items.set(answer.body['id'] as string, { tenant, text });
};

const respond: Work = async (context, tenant, token) => {
  const { url, site, oracle, nextNumber } = context;
  const text = `input ${nextNumber()}`;
  const body = { model: site.modelName, input: text, max_output_tokens: 3, store: true };
  const answer = await write(context, 'respond', ask(url, '/v1/responses', { token, body }));
  if (answer?.body['store'] === true) oracle.responses.set(answer.body['id'] as string, { tenant, text });
};

const saveChat: Work = async (context, tenant, token) => {
  const { url, oracle, random, nextNumber } = context;
  const own = [...oracle.chats].filter(([, one]) => one.tenant === tenant && one.maybe === null);
  const [id, known] = (random.next() < 0.6 ? pick(random, own) : undefined) ?? [`chat-${nextNumber()}`, null];
  const title = `title ${nextNumber()}`;
  const saved = known ?? { tenant, version: 0, value: null, earlier: new Set<string>(), maybe: null };
  saved.maybe = title;
  oracle.chats.set(id, saved);
  const { version } = saved;
  const answer = await write(context, 'chat', ask(url, `/v1/chats/${id}`, { token, body: { title, version, content: { text: title } } })); // prettier-ignore
  if (answer !== null) {
    acknowledge(saved, title);
    saved.version = answer.body['version'] as number;
  } else if (known === null) oracle.chats.delete(id);
  else saved.maybe = null;
};

const manageKeys: Work = async (context) => {
  const { url, site, oracle, random, nextNumber } = context;
  const token = site.tokens.admin;
  const old = pick(random, [...oracle.keys.keys()]);
  if (old !== undefined && random.next() < 0.5) {
    const secret = oracle.keys.get(old)!;
    oracle.keys.delete(old);
    oracle.maybeRevoked.add(old);
    const answer = await write(context, 'revoke', ask(url, `/admin/keys/${old}`, { token, method: 'DELETE' }));
    oracle.maybeRevoked.delete(old);
    (answer === null ? oracle.keys : oracle.revokedKeys).set(old, secret);
    return;
  }
  const answer = await write(context, 'key', ask(url, '/admin/keys', { token, body: { name: `k${nextNumber()}` } }));
  if (answer !== null) oracle.keys.set(answer.body['id'] as string, answer.body['token'] as string);
};

const WORKS: readonly (readonly [share: number, work: Work])[] = [
  [5, add],
  [2, remove],
  [3, chat],
  [2, streamed],
  [4, rate],
  [4, talk],
  [2, converse],
  [1, respond],
  [2, saveChat],
  [1, manageKeys],
];
const BAG = WORKS.flatMap(([share, work]) => Array.from({ length: share }, () => work));

/** Runs clients until `signal`; a connection that ends is the end of its client. Returns the number of exchanges. */
export async function runLoad(context: LoadContext, numClients: number, signal: AbortSignal): Promise<number> {
  let numExchanges = 0;
  const client = async (tenant: Tenant): Promise<void> => {
    const token = context.site.tokens[tenant];
    while (!signal.aborted) {
      try {
        await pick(context.random, BAG)!(context, tenant, token);
        numExchanges++;
      } catch {
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: numClients }, (_, i) => client(TENANTS[i % TENANTS.length]!)));
  return numExchanges;
}
