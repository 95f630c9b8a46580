// Clients and hubs that send the server to addresses and files it must not reach: URLs of models and MCP servers in every spelling,
// redirects, names whose address changes, and paths of adapters.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import type { LookupAddress } from 'node:dns';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, relative } from 'node:path';
import { createRandom, type Random } from '../../src/core/random.ts';
import { createHub } from '../../src/hub/hub.ts';
import { createNodeHubPlatform } from '../../src/platform/node/process/hub-platform.ts';
import { fetchPublic } from '../../src/platform/node/process/public-fetch.ts';
import { createClock, type Part, shorten } from '../part.ts';
import { chooseOf, spellPrivateUrl } from '../support/address-spellings.ts';
import { type Answer, ask } from '../support/client.ts';
import { createSite, kill, readHealth, type Site } from '../support/site.ts';

const CANARY = 'zanzibar canary of the operator';
const COMMIT = 'a'.repeat(40);
/** Refusals take no connection: a minute would be one that was tried. */
const ANSWER_LIMIT_MS = 20_000;
/** How a refusal is told: the address, or a URL that is none of a model. */
const REFUSED =
  /is not public|"model" must be|^model "|must be an http or https URL|without a usable address|more than 10 redirects/;

interface Fake {
  readonly server: Server;
  readonly port: number;
  close(): Promise<void>;
}

async function listen(
  host: string,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Fake> {
  const server = createServer(answer);
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, host, resolve));
  return {
    server,
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Bytes of UTF-8, as a browser would read them. */
const headerOf = (text: string): string => Buffer.from(text).toString('latin1');
const redirect = (response: ServerResponse, location: string): void =>
  void response.writeHead(302, { location: headerOf(location) }).end();

/** The hub that the operator has configured: it leads each pull astray in the way that the repository is named after. */
function answerAsHub(targets: ReadonlyMap<string, string>) {
  return ({ url = '' }: IncomingMessage, response: ServerResponse): void => {
    const [, way, id] = /o\/(\w+)-(\d+)/.exec(url) ?? [];
    const target = targets.get(id ?? '') ?? '/';
    const [, hops] = /[?&]hop=(\d+)/.exec(url) ?? [];
    const isHop = hops !== undefined && hops !== '0';
    if (isHop) return redirect(response, `/o/${way}-${id}?hop=${Number(hops) - 1}`);
    if (hops !== undefined || way === 'moved') return redirect(response, target);
    const file = {
      type: 'file',
      path: 'm-Q8_0.gguf',
      size: 100,
      oid: 'b'.repeat(40),
      lfs: { oid: 'c'.repeat(64), size: 100 },
    };
    if (url.includes('/revision/')) return void response.end(JSON.stringify({ sha: COMMIT }));
    if (!url.includes('/tree/')) return redirect(response, `/o/${way}-${id}?hop=3`);
    if (way === 'paged') response.setHeader('link', headerOf(`<${target}>; rel="next"`));
    response.end(JSON.stringify([file]));
  };
}

interface Probe {
  /** A sentence if the answer shows that the address was tried. */
  (random: Random, round: number): Promise<string | null>;
}

/** The reason why a pull failed; an empty text: it did not. */
const reasonOf = ({ text, status }: Answer): string =>
  status === 200 && !text.includes('"error"')
    ? ''
    : (/"(?:error|message)":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1]?.replaceAll('\\"', '"') ?? text);

function createServerProbes(url: string, site: Site, trap: number, targets: Map<string, string>): readonly Probe[] {
  const post = (path: string, body: object): Promise<Answer> =>
    ask(url, path, { token: site.tokens.admin, body, timeoutMs: ANSWER_LIMIT_MS });
  const pull = async (model: string): Promise<string | null> => {
    const reason = reasonOf(await post('/api/pull', { model, stream: false }));
    return REFUSED.test(reason) ? null : `pull of ${model}: ${reason.slice(0, 200)}`;
  };
  const pullFromHub = async (random: Random, round: number, way: string): Promise<string | null> => {
    const target = spellPrivateUrl(random, trap, '/m.gguf');
    targets.set(String(round), target);
    const told = await pull(`o/${way}-${round}:Q8_0`);
    return told === null ? null : `${told} (led to ${target})`;
  };
  return [
    (random) => pull(spellPrivateUrl(random, trap, '/m.gguf')),
    (random) => pull(spellPrivateUrl(random, trap, '/m.gguf')),
    (random, round) => pullFromHub(random, round, 'moved'),
    (random, round) => pullFromHub(random, round, 'paged'),
    (random, round) => pullFromHub(random, round, 'file'),
    async (random) => {
      const target = spellPrivateUrl(random, trap, '/mcp');
      const tools = [{ type: 'mcp', server_label: 'x', server_url: target, require_approval: 'never' }];
      const { text } = await post('/v1/responses', { model: 'm', input: 'hi', max_output_tokens: 1, tools });
      return /status \d|ECONN|timed out|fetch failed/i.test(text)
        ? `MCP server ${target}: ${text.slice(0, 200)}`
        : null;
    },
    async (random) => {
      const image = { type: 'image_url', image_url: { url: spellPrivateUrl(random, trap, '/x.png') } };
      const { status } = await post('/v1/chat/completions', {
        model: 'm',
        max_tokens: 1,
        messages: [{ role: 'user', content: [image] }],
      });
      return status === 400 ? null : `an image by URL was answered with ${status}`;
    },
  ];
}

/** A name whose address changes with every question, in a hub of this process: only 127.0.0.2 counts as public here. */
async function probeRebinding(random: Random, port: number, cacheRoot: string): Promise<void> {
  const lookup = (_name: string, _options: object, done: (error: null, found: LookupAddress[]) => void): void => {
    const found = chooseOf(random, [['127.0.0.2'], ['127.0.0.1'], ['127.0.0.2', '127.0.0.1'], ['::1'], ['127.0.0.2']]);
    done(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  const node = createNodeHubPlatform();
  const platform = {
    ...node,
    cacheRoot,
    environment: {},
    fetchPublic: (url: string, init: RequestInit) =>
      fetchPublic(url, init, { lookup, isAllowed: (address) => address === '127.0.0.2' }),
    sleep: async () => {},
  };
  const hub = createHub({ platform, endpoint: 'http://127.0.0.1:9', token: null });
  await hub.pullModel(`http://rebound.example:${port}/m.gguf`, { isFromClient: true }).catch(() => {});
}

/** Two paths outside the folders of adapters: one that exists, one that does not. */
function createFiles(folder: string): {
  readonly adapters: string;
  readonly pairs: readonly (readonly [string, string])[];
  readonly bad: readonly string[];
} {
  const adapters = join(folder, 'adapters');
  mkdirSync(join(adapters, 'peft'), { recursive: true });
  writeFileSync(join(folder, 'secret.gguf'), CANARY);
  for (const name of ['secret.gguf', 'none.gguf']) symlinkSync(join(folder, name), join(adapters, `link-${name}`));
  symlinkSync(folder, join(adapters, 'up'));
  writeFileSync(join(adapters, 'bad.gguf'), CANARY);
  for (const name of ['adapter_model.safetensors', 'adapter_config.json'])
    writeFileSync(join(adapters, 'peft', name), CANARY);
  const spellings: readonly ((name: string) => string)[] = [
    (name) => join(folder, name),
    (name) => `../${name}`,
    (name) => `peft/../../${name}`,
    (name) => `up/${name}`,
    (name) => `link-${name}`,
    (name) => `${adapters}/../${name}`,
    (name) => `${adapters}/./peft//../../${name}`,
    (name) => relative(process.cwd(), join(folder, name)),
    (name) => `/proc/self/root${join(folder, name)}`,
    (name) => (name === 'secret.gguf' ? '/etc/passwd' : '/etc/passwd-that-is-not'),
    (name) => (name === 'secret.gguf' ? '/dev/stdin' : '/dev/nothing'),
  ];
  return {
    adapters,
    pairs: spellings.map((spell) => [spell('secret.gguf'), spell('none.gguf')] as const),
    bad: ['bad.gguf', 'peft'],
  };
}

export const fetchPart: Part = {
  name: 'fetch',
  summary: 'addresses and files that the server must not reach',
  async run(options) {
    const clock = createClock(options, 600);
    const random = createRandom(options.seed);
    const problems: string[] = [];
    const hits: string[] = [];
    const targets = new Map<string, string>();
    let numRebound = 0;
    const trap = await listen('0.0.0.0', (request, response) => {
      // The only address that counts as public, for names that change their address.
      if (request.socket.localAddress === '127.0.0.2') {
        numRebound++;
        return redirect(
          response,
          `http://${chooseOf(random, ['rebound.example', 'other.example', '127.0.0.1'])}:${trap.port}/m.gguf`,
        );
      }
      hits.push(`${request.method} ${request.headers.host}${request.url}`);
      response.end('inside');
    });
    const hub = await listen('127.0.0.1', answerAsHub(targets));
    const site = await createSite({
      environment: { HF_HUB_OFFLINE: '', HF_ENDPOINT: `http://127.0.0.1:${hub.port}`, RUVLLM_HUB_ORIGINS: '' },
      args: (folder) => [
        '--no-memory',
        '--threads',
        '1',
        '--mcp-urls',
        '--adapter-folder',
        join(folder.path, 'adapters'),
      ],
    });
    let numLeaks = 0;
    try {
      const files = createFiles(site.folder.path);
      const server = await site.start();
      const probes = createServerProbes(server.url, site, trap.port, targets);
      const load = async (path: string): Promise<string> => {
        const { status, text } = await ask(server.url, '/admin/adapters', {
          token: site.tokens.admin,
          body: { name: 'x', path },
        });
        const [once, twice] = [JSON.stringify(path), JSON.stringify(JSON.stringify(path))];
        return `${status} ${text.replaceAll(once.slice(1, -1), 'PATH').replaceAll(twice.slice(3, -3), 'PATH')}`;
      };
      const leak = (sentence: string): void => {
        numLeaks++;
        problems.push(sentence);
      };
      while (clock.next()) {
        const kind = clock.rounds % 10;
        if (kind === 0) {
          const [there, missing] = chooseOf(random, files.pairs);
          const [one, other] = [await load(there), await load(missing)];
          const [plain, bare] = [one, other].map((text) => text.replaceAll(/"request_?id":"[^"]*"/g, ''));
          if (plain !== bare) leak(`${there} and ${missing} are answered differently: ${one} / ${other}`);
          const bad = chooseOf(random, files.bad);
          const answer = await load(bad);
          if (/zanz|7a6e617a|0x/.test(one + answer))
            leak(`the answer for ${bad} or ${there} has bytes of a file: ${answer}`);
        } else if (kind === 1) {
          await probeRebinding(random, trap.port, join(site.folder.path, 'rebound'));
        } else {
          const told = await chooseOf(random, probes)(random, clock.rounds).catch(
            (error: unknown) => `no answer: ${(error as Error).message}`,
          );
          if (told !== null) problems.push(told);
        }
      }
      for (const hit of hits) problems.push(`a private address was reached: ${hit}`);
      if (clock.rounds >= 60 && numRebound === 0) problems.push('no name that changes its address was followed');
      const health = await readHealth(server.url);
      if (health?.status !== 200) problems.push(`health afterwards: ${JSON.stringify(health)}`);
      await kill(server);
      return {
        figures: { fetch_probes: clock.rounds, fetch_escapes: hits.length, file_leaks: numLeaks },
        problems: shorten(problems),
      };
    } finally {
      site.dispose();
      await trap.close();
      await hub.close();
    }
  },
};
