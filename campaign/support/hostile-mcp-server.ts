// An MCP server over HTTP on this machine that answers everything but `initialize` to harm its client.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from '../../src/core/random.ts';
import { hostileValue } from './hostile-messages.ts';

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: { readonly cursor?: string };
}

type Answer = (call: Call, response: ServerResponse, random: Random) => void;

const head = (id: number): string => `{"jsonrpc":"2.0","id":${id},`;
const json = (response: ServerResponse, text: string): void =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(text);
const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });
const tool = (name: string, more = ''): string => `{"name":"${name}","annotations":{"readOnlyHint":true}${more}}`;
const list = (id: number, tools: string, cursor?: string): string =>
  `${head(id)}"result":{"tools":[${tools}]${cursor === undefined ? '' : `,"nextCursor":"${cursor}"`}}}`;
const many = (count: number, create: (index: number) => string): string =>
  Array.from({ length: count }, (_, i) => create(i)).join();
const property = (name: string): string => `"${name}":{"type":"string","pattern":"^[a-z]{1,99}$","default":[]}`;
const schema = (index: number): string =>
  `,"inputSchema":{"type":"object","properties":{${many(60, (i) => property(`p${index}_${i}`))}}}`;
/** An object with a hostile value in each of these fields. */
const hostileFields = (random: Random, ...names: string[]): string =>
  names.map((name) => `,"${name}":${hostileValue(random)}`).join('');

/** Answers to `tools/list`; the others to `tools/call`, which need a list that works. */
const LISTS: Readonly<Record<string, Answer>> = {
  'pages of megabytes without an end': ({ id, params }, response) =>
    json(
      response,
      list(id, tool(`t${params.cursor ?? ''}`, `,"description":"${'x'.repeat(4 << 20)}"`), `${params.cursor ?? ''}x`),
    ),
  'small pages without an end': ({ id, params }, response) => json(response, list(id, '', `${params.cursor ?? ''}x`)),
  'pages in a circle': ({ id, params }, response) => json(response, list(id, '', params.cursor === 'a' ? 'b' : 'a')),
  'large schemas': ({ id }, response) =>
    json(
      response,
      list(
        id,
        many(900, (i) => tool(`t${i}`, schema(i))),
      ),
    ),
  '20,000 tools': ({ id }, response) =>
    json(
      response,
      list(
        id,
        many(20_000, (i) => tool(`t${i}`)),
      ),
    ),
  'tools of one name': ({ id }, response) =>
    json(
      response,
      list(
        id,
        many(900, () => tool('same')),
      ),
    ),
  'hostile values': ({ id }, response, random) => {
    const fields = hostileFields(random, 'description', 'inputSchema', 'annotations');
    json(response, list(id, `{"name":"x"${fields}},${hostileValue(random)}`));
  },
};
const CALLS: Readonly<Record<string, Answer>> = {
  'a hostile result': ({ id }, response, random) => json(response, `${head(id)}"result":${hostileValue(random)}}`),
  'hostile content': ({ id }, response, random) => {
    const link = `{"type":"resource_link"${hostileFields(random, 'name', 'uri')}}`;
    const text = `{"type":"text"${hostileFields(random, 'text')}}`;
    const result = `"content":[${link},${text},${hostileValue(random)}]${hostileFields(random, 'structuredContent', 'isError')}`;
    json(response, `${head(id)}"result":{${result}}}`);
  },
  'a hostile error': ({ id }, response, random) =>
    json(response, `${head(id)}"error":{"code":${hostileValue(random)},"message":${hostileValue(random)}}}`),
  'a result of eight megabytes': ({ id }, response) =>
    json(response, `${head(id)}"result":{"content":[{"type":"text","text":"${'x'.repeat(8_000_000)}"}]}}`),
  'half an answer': (_call, response) => json(response, '{"jsonrpc":"2.0","id'),
  'requests without an end': (_call, response) => {
    stream(response);
    const ping = `data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n`.repeat(1000);
    const write = (): void => {
      while (!response.destroyed && response.write(ping));
    };
    response.on('drain', write);
    write();
  },
  'a line without an end': (_call, response) => {
    stream(response).write('data: ');
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', write);
    write();
  },
  'another id': ({ id }, response, random) =>
    json(response, `{"jsonrpc":"2.0","id":${random.next() < 0.5 ? hostileValue(random) : id + 1},"result":{}}`),
  'a redirect': (_call, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
  'a broken connection': (_call, response) => void response.destroy(),
};
export const HOSTILE_ANSWERS = [...Object.keys(LISTS), ...Object.keys(CALLS)] as const;

/** So that a model without sense calls it at once. */
const NO_ARGUMENTS = '{"type":"object","properties":{},"additionalProperties":false}';

export interface HostileServer {
  /** Of the server that answers in this way. */
  urlOf(answer: string): string;
  /** Calls of tools so far. */
  readonly numCalls: () => number;
  close(): void;
}

export async function startHostileServer(random: Random): Promise<HostileServer> {
  let numCalls = 0;
  const reply = (call: Call, answer: string, response: ServerResponse): void => {
    const { id, method } = call;
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'initialize') return json(response, `${head(id)}"result":{"protocolVersion":"2025-11-25"}}`);
    if (method === 'tools/call') numCalls++;
    if (method === 'tools/list' && LISTS[answer] === undefined)
      return json(response, list(id, tool('x', `,"inputSchema":${NO_ARGUMENTS}`)));
    return (LISTS[answer] ?? CALLS[answer])!(call, response, random);
  };
  const server = createServer((request: IncomingMessage, response) => {
    response.on('error', () => {});
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      const answer = decodeURIComponent(request.url!.slice(1));
      if (body === '') response.writeHead(204).end();
      else reply(JSON.parse(body) as Call, answer, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    urlOf: (answer) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/${encodeURIComponent(answer)}`,
    numCalls: () => numCalls,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
