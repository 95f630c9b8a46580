// One tenant against another, and keys beyond their scope: every route with every kind of key, and every object of alice asked for
// by bob.
import type { RouteScope } from '../../src/server/guard.ts';
import { CALLS, type Objects } from '../../src/server/routes/route-calls.contract.ts';
import { createClock, type Part, shorten } from '../part.ts';
import { type Answer, ask } from '../support/client.ts';
import { createSite, kill, type Site } from '../support/site.ts';

type KeyKind = 'none' | 'wrong' | 'revoked' | 'read-only' | 'inference' | 'admin';

const ALLOWED: Readonly<Record<RouteScope, readonly KeyKind[]>> = {
  public: ['none', 'wrong', 'revoked', 'read-only', 'inference', 'admin'],
  read: ['read-only', 'inference', 'admin'],
  inference: ['inference', 'admin'],
  operate: ['read-only', 'admin'],
  download: ['admin'],
  admin: ['admin'],
};
const KEY_KINDS: readonly KeyKind[] = ['none', 'wrong', 'revoked', 'read-only', 'inference', 'admin'];
/** In all that alice stores; never in an answer to anybody else, nor in the log. */
const CANARY = 'zanzibar canary of alice';
/** Endless, or the end of the server's state: sent only with keys that must be refused. */
const NOT_ALLOWED_ONLY =
  /\/events$|rotate-key|tenants\/erase|models\/(?:unload|load|benchmark|pull)|\/api\/(?:pull|delete)|learning\/run/;

/** A route that streams for ever answers a key that it must refuse. */
const ANSWER_LIMIT_MS = 20_000;

interface Documented {
  readonly paths: Record<string, Record<string, { 'x-scope'?: RouteScope }>>;
}

const withModel = (body: object | undefined): object | undefined =>
  body === undefined ? undefined : (JSON.parse(JSON.stringify(body).replaceAll('"toy"', '"m"')) as object);

async function createObjects(url: string, site: Site): Promise<Objects> {
  const post = async (path: string, body: object): Promise<Answer> => {
    const answer = await ask(url, path, { token: site.tokens.alice, body });
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.text.slice(0, 200)}`);
    return answer;
  };
  const messages = [{ role: 'user', content: CANARY }];
  const chat = await post('/v1/chat/completions', { model: 'm', messages, max_tokens: 2, store: true, session: 'session-of-alice', metadata: { note: CANARY } }); // prettier-ignore
  const response = await post('/v1/responses', { model: 'm', input: CANARY, max_output_tokens: 2 });
  const conversation = await post('/v1/conversations', { items: [{ type: 'message', role: 'user', content: CANARY }] });
  const conversationId = conversation.body['id'] as string;
  const items = await ask(url, `/v1/conversations/${conversationId}/items`, { token: site.tokens.alice });
  await post('/v1/chats/chat-of-alice', { title: CANARY, version: 0, content: { text: CANARY } });
  const form = new FormData();
  form.set('purpose', 'batch');
  const line = { custom_id: 'a', method: 'POST', url: '/v1/completions', body: { model: 'm', prompt: CANARY, max_tokens: 1 } }; // prettier-ignore
  form.set('file', new Blob([JSON.stringify(line)]), 'requests.jsonl');
  const headers = { authorization: `Bearer ${site.tokens.alice}` };
  const uploaded = await fetch(`${url}/v1/files`, { method: 'POST', headers, body: form });
  const { id: fileId } = (await uploaded.json()) as { id: string };
  const batch = await post('/v1/batches', { input_file_id: fileId, endpoint: '/v1/completions', completion_window: '24h' }); // prettier-ignore
  const record = await post('/admin/memory/add', { text: CANARY });
  const document = await post('/admin/memory/documents', { name: 'secret.md', text: `# ${CANARY}\n\n${CANARY} again` });
  const documentId = (document.body['id'] ?? (document.body['document'] as { id: string } | undefined)?.id) as string;
  return {
    requestId: (chat.body['id'] as string).replace('chatcmpl-', ''),
    chatId: chat.body['id'] as string,
    responseId: response.body['id'] as string,
    conversationId,
    itemId: (items.body['data'] as { id: string }[])[0]!.id,
    fileId,
    batchId: batch.body['id'] as string,
    dashboardChatId: 'chat-of-alice',
    recordId: record.body['id'] as string,
    documentId,
    sessionId: 'session-of-alice',
  };
}

export const tenants: Part = {
  name: 'tenants',
  summary: 'every route with every kind of key, and objects of another tenant',
  async run(options) {
    const clock = createClock(options, 1_000_000);
    const site = await createSite({ model: '260K', args: () => ['--log'] });
    const problems: string[] = [];
    let [numProbes, numForeign] = [0, 0];
    try {
      const server = await site.start();
      const { url } = server;
      const admin = site.tokens.admin;
      const createKey = async (name: string, scopes: readonly string[]): Promise<{ id: string; token: string }> =>
        (await ask(url, '/admin/keys', { token: admin, body: { name, tenant: 'mallory', scopes } })).body as never;
      const revoked = await createKey('revoked', ['inference']);
      await ask(url, `/admin/keys/${revoked.id}`, { token: admin, method: 'DELETE' });
      const tokens: Readonly<Record<KeyKind, string | undefined>> = {
        none: undefined,
        wrong: `${site.tokens.bob.slice(0, -4)}AAAA`,
        revoked: revoked.token,
        'read-only': (await createKey('reader', ['read-only'])).token,
        inference: (await createKey('writer', ['inference'])).token,
        admin,
      };
      const objects = await createObjects(url, site);
      const { paths } = (await ask(url, '/openapi.json', { token: admin })).body as unknown as Documented;
      const scopeOf = new Map<string, RouteScope>();
      for (const [path, methods] of Object.entries(paths)) {
        for (const [method, { 'x-scope': scope }] of Object.entries(methods)) {
          if (scope !== undefined) scopeOf.set(`${method.toUpperCase()} ${path}`, scope);
        }
      }
      const check = (label: string, kind: KeyKind, answer: Answer): void => {
        numProbes++;
        if (kind !== 'admin' && answer.text.includes(CANARY)) problems.push(`${label} shows data of alice to a key of another tenant`); // prettier-ignore
        if (answer.status === 500) problems.push(`${label}: 500 ${answer.text.slice(0, 200)}`);
      };
      for (const [route, call] of Object.entries(CALLS)) {
        if (!clock.next()) break;
        const [method, pattern] = route.split(' ') as [string, string];
        const path = pattern.replaceAll(/:(\w+)(?:\{[^}]*\})?/g, '{$1}');
        const scope = scopeOf.get(`${method} ${path}`);
        if (scope === undefined) {
          problems.push(`${route} is not in /openapi.json`);
          continue;
        }
        for (const kind of KEY_KINDS) {
          const isAllowed = ALLOWED[scope].includes(kind);
          if (isAllowed && (NOT_ALLOWED_ONLY.test(path) || (kind === 'admin' && scope === 'admin' && method !== 'GET'))) continue; // prettier-ignore
          const body = method === 'GET' || method === 'DELETE' ? undefined : withModel(call.body ?? {});
          const sent = { method, ...(tokens[kind] === undefined ? {} : { token: tokens[kind]! }), ...(body === undefined ? {} : { body }) }; // prettier-ignore
          const label = `${route} with ${kind} key`;
          const answer = await ask(url, call.path ?? pattern, { ...sent, timeoutMs: ANSWER_LIMIT_MS }).catch(
            () => null,
          );
          if (answer === null) {
            problems.push(`${label}: no answer`);
            continue;
          }
          check(label, kind, answer);
          const isRefused = answer.status === 401 || answer.status === 403;
          if (isRefused === isAllowed) problems.push(`${label}: ${answer.status}`);
          const isKeyless = kind === 'none' || kind === 'wrong' || kind === 'revoked';
          if (!isAllowed && answer.status !== (isKeyless ? 401 : 403)) problems.push(`${label}: ${answer.status}, not ${isKeyless ? 401 : 403}`); // prettier-ignore
        }
        if (typeof call.owned !== 'function') continue;
        // Objects of alice, asked for by bob, who has the scope; and by bob as if he were alice.
        const owned = call.owned(objects);
        const foreign = withModel(owned.body);
        for (const suffix of pattern.startsWith('/admin/') ? ['', '?tenant=alice'] : ['']) {
          const target = (owned.path ?? call.path ?? pattern) + suffix;
          const sent = { token: site.tokens.bob, method, ...(foreign === undefined ? {} : { body: foreign }) };
          const answer = await ask(url, target, sent);
          numForeign++;
          check(`${route}${suffix} of alice by bob`, 'inference', answer);
          // Refusals of the whole operation (501, or 400 for every id) say nothing about the object.
          if (answer.status < 400) problems.push(`${route}${suffix} of alice by bob: ${answer.status}`);
        }
      }
      for (const path of [
        '/admin/memory/list',
        '/admin/memory/export',
        '/admin/memory/search',
        '/admin/memory/audit/search',
        '/admin/memory/sessions/list',
        '/admin/memory/audit/export',
      ]) {
        // prettier-ignore
        for (const suffix of ['', '?tenant=alice']) {
          const body = path.endsWith('/memory/search') ? { text: CANARY } : {};
          check(`${path}${suffix} by bob`, 'inference', await ask(url, path + suffix, { token: site.tokens.bob, body }));
        }
      }
      const output = site.errorOutput();
      if (output.includes(CANARY)) problems.push('the log has a text of alice');
      for (const [name, token] of Object.entries(site.tokens)) if (output.includes(token)) problems.push(`the log has the token of ${name}`); // prettier-ignore
      // Whatever bob tried, alice still has everything.
      for (const [path, body] of [
        [`/admin/memory/get`, { id: objects.recordId }],
        ['/admin/memory/sessions/show', { sessionId: objects.sessionId }],
      ] as const) {
        // prettier-ignore
        const { status } = await ask(url, path, { token: site.tokens.alice, body });
        if (status !== 200) problems.push(`${path} of alice afterwards: ${status}`);
      }
      const left = await ask(url, `/v1/conversations/${objects.conversationId}`, { token: site.tokens.alice });
      if (left.status !== 200) problems.push(`the conversation of alice afterwards: ${left.status}`);
      await kill(server);
    } finally {
      site.dispose();
    }
    return {
      figures: {
        routes: Object.keys(CALLS).length,
        probes: numProbes,
        foreign_objects: numForeign,
        holes: problems.length,
      },
      problems: shorten(problems),
    };
  },
};
