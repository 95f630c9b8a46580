// A tenant leaves a unique word in every part of a real server, is erased, and the word is searched for everywhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createServeFolder, type ServedHere } from '../../test/support/serve-process.ts';

export interface Planted {
  readonly part: string;
  /** What proved that it was there before the erasure. */
  readonly evidence: string;
  /** What was left after it; 0: nothing. */
  readonly traces: number;
}

export interface EraseOutcome {
  readonly planted: readonly Planted[];
  /** Parts and counts that the server reported. */
  readonly parts: readonly { readonly name: string; readonly numFound: number; readonly numLeft: number }[];
  /** Data of the other tenant that is missing: 0. */
  readonly numLost: number;
  readonly eraseMs: number;
}

type Json = Record<string, any>;

const VICTIM = 'victim';
const OTHER = 'bystander';
const CANARY = 'quokkamarmalade7319';
const PROMPT = `The secret of the tenant is ${CANARY}, and the story goes on for a while. `.repeat(3);

const STORIES = resolve('../shared/models/stories15M-q8_0.gguf');

/** Forms in which the word could be in a file. */
const NEEDLES = [
  Buffer.from(CANARY),
  Buffer.from(CANARY, 'utf16le'),
  Buffer.from(Buffer.from(CANARY).toString('hex')),
  Buffer.from(Buffer.from(CANARY).toString('base64').slice(0, 24)),
];

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Files that contain the word in any form, or have it in their name. */
const filesWithCanary = (folder: string): string[] =>
  filesBelow(folder).filter((path) => {
    const bytes = readFileSync(path);
    return path.includes(CANARY) || NEEDLES.some((needle) => bytes.includes(needle));
  });

/** Key files of tenants, below any folder. */
const keyFiles = (folder: string): string[] => filesBelow(folder).filter((path) => path.endsWith('.key') && /[/\\]keys[/\\]/.test(path)); // prettier-ignore
const pageFiles = (folder: string): string[] => filesBelow(folder).filter((path) => path.endsWith('.page'));

async function waitUntil(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await isTrue()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`${what} did not happen`);
}

/** Runs the scenario; `log` is told each step. */
export async function runEraseScenario(log: (line: string) => void = () => {}): Promise<EraseOutcome> {
  const serving = createServeFolder({ contextLength: 256 });
  const { data, path: root, here } = serving;
  const spill = join(root, 'spill');
  const tokens: Record<string, string> = {};
  for (const name of [VICTIM, OTHER]) tokens[name] = (await here.keys('create', name)).token;
  tokens['root'] = (await here.keys('create', 'root', '--scope', 'admin')).token;

  const model = existsSync(STORIES) ? `tiny=${STORIES}` : serving.model;
  const start = (): Promise<ServedHere> =>
    here.start(model, '--context', '256', '--kv-spill', spill, '--learning-rate', '0.02');
  let server = await start();
  async function call(who: string, method: 'GET' | 'POST', path: string, body?: object) {
    const response = await fetch(server.url + path, {
      method,
      headers: { authorization: `Bearer ${tokens[who]!}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Json };
  }
  const post = (who: string, path: string, body: object = {}) => call(who, 'POST', path, body);
  const operation = async (who: string, path: string, body: object = {}): Promise<Json> => {
    const reply = await post(who, `/admin/${path}`, body);
    if (reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  const complete = async (who: string, more: object = {}): Promise<Json> =>
    (await post(who, '/v1/completions', { model: 'tiny', prompt: PROMPT, max_tokens: 4, temperature: 0, ...more }))
      .body;
  const cachedTokens = (answer: Json): number => Number(answer['usage']?.prompt_tokens_details?.cached_tokens ?? 0);

  /** Everything that the API still says of a tenant. */
  const probes: Record<string, (who: string) => Promise<number>> = {
    'audit log': async (who) => ((await operation(who, 'memory/audit/search', { text: CANARY })).entries as []).length,
    'memory texts': async (who) =>
      ((await operation(who, 'memory/search', { text: CANARY, k: 20 })).results as Json[]).filter(({ text }) => String(text).includes(CANARY)).length, // prettier-ignore
    'session turns': async (who) => ((await operation(who, 'memory/sessions/list')).sessions as []).length,
    'records of any kind': async (who) =>
      JSON.stringify(await operation(who, 'memory/export')).split(CANARY).length - 1, // prettier-ignore
    'requests for learning': async (who) =>
      Object.values((await operation(who, 'learning/status')).numRequests as Record<string, number>).reduce(
        (a, b) => a + b,
        0,
      ),
    'learned steps': async (who) =>
      ((await operation(who, 'learning/status')).models as Json[]).reduce((sum, one) => sum + Number(one['numSingleAnswers']), 0), // prettier-ignore
    'stored response': (who) => isThere(who, `/v1/responses/${stored[who]!.response}`),
    conversation: (who) => isThere(who, `/v1/conversations/${stored[who]!.conversation}`),
    'stored chat completion': (who) => isThere(who, `/v1/chat/completions/${stored[who]!.chat}`),
  };
  const stored: Record<string, Record<'response' | 'conversation' | 'chat', string>> = {};
  const isThere = async (who: string, path: string): Promise<number> =>
    (await call(who, 'GET', path)).status === 200 ? 1 : 0;

  async function plant(who: string): Promise<void> {
    log(`planting as ${who}`);
    await operation(who, 'memory/add', { text: `${CANARY} is the password`, source: CANARY, metadata: { note: CANARY } }); // prettier-ignore
    await complete(who, { session: 's1', user: 'ann' });
    const answer = await complete(who, { session: 's2', user: 'ben' });
    await post(who, '/v1/feedback', { request_id: answer['id'], correction: ` ${CANARY}`, comment: CANARY });
    const messages = [{ role: 'user', content: PROMPT }];
    const idOf = async (path: string, body: object): Promise<string> =>
      String((await post(who, path, { metadata: { note: CANARY }, ...body })).body['id']);
    stored[who] = {
      response: await idOf('/v1/responses', { model: 'tiny', input: PROMPT, max_output_tokens: 4, user: 'ann' }),
      conversation: await idOf('/v1/conversations', { items: messages }),
      chat: await idOf('/v1/chat/completions', { model: 'tiny', messages, max_tokens: 4, user: 'ann', store: true }),
    };
  }

  try {
    for (const who of [VICTIM, OTHER]) await plant(who);
    await waitUntil('storing the requests', async () => (await probes['audit log']!(VICTIM)) >= 4 && (await probes['audit log']!(OTHER)) >= 4); // prettier-ignore
    await waitUntil('spilling pages', () => pageFiles(spill).length > 4);
    const before: Record<string, number> = {};
    for (const [name, probe] of Object.entries(probes)) before[name] = await probe(VICTIM);
    before['prefix cache'] = cachedTokens(await complete(VICTIM));
    const kept: Record<string, number> = {};
    for (const [name, probe] of Object.entries(probes)) kept[name] = await probe(OTHER);
    const keysBefore = keyFiles(data).length + keyFiles(spill).length;
    const pagesBefore = pageFiles(spill).length;

    log('erasing while an answer is being generated');
    const running = complete(VICTIM, { max_tokens: 90, user: 'ann' }).catch(() => ({}));
    await new Promise((done) => setTimeout(done, 100));
    const startMs = performance.now();
    const report = await operation('root', `memory/tenants/erase?tenant=${VICTIM}`, { confirm: VICTIM });
    const eraseMs = performance.now() - startMs;
    await running;

    const traces: Record<string, number> = {};
    for (const [name, probe] of Object.entries(probes)) traces[name] = await probe(VICTIM);
    traces['spill files'] = pagesBefore - pageFiles(spill).length > 0 ? 0 : 1;
    traces['keys'] = keysBefore - keyFiles(data).length - keyFiles(spill).length === 2 ? 0 : 1;
    traces['prefix cache'] = cachedTokens(await complete(VICTIM));
    const lost: string[] = [];
    for (const [name, probe] of Object.entries(probes)) if ((await probe(OTHER)) < kept[name]!) lost.push(name);
    if (cachedTokens(await complete(OTHER)) === 0) lost.push('prefix cache');

    // The last prompt was new data; it is erased from the command line, without a server.
    await server.stop();
    const again = await here.run('memory', 'erase-tenant', VICTIM, '--confirm', VICTIM);
    traces['after the command'] = (JSON.parse(again.stdout) as Json)['isErased'] === true ? 0 : 1;
    traces['all files'] = [data, spill, join(root, 'state'), join(root, 'cache')].flatMap(filesWithCanary).length;
    server = await start();
    traces['prefix cache after a restart'] = cachedTokens(await complete(VICTIM));
    traces['audit log after a restart'] = (await probes['audit log']!(OTHER)) > 0 ? 0 : 1;
    log(lost.length === 0 ? 'the other tenant has all its data' : `lost of the other tenant: ${lost.join(', ')}`);

    const evidence: Record<string, string> = {
      'spill files': `${pagesBefore} pages`,
      keys: `${keysBefore} key files`,
      'prefix cache': `${before['prefix cache']} cached tokens`,
    };
    const planted = Object.entries(traces).map(([part, numTraces]) => ({
      part,
      evidence: evidence[part] ?? (part in before ? `${before[part]} found` : ''),
      traces: numTraces,
    }));
    return { planted, parts: report['parts'] as EraseOutcome['parts'], numLost: lost.length, eraseMs };
  } finally {
    await here.stopAll();
    serving.dispose();
  }
}
