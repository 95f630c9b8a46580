// An MCP server over stdio without dependencies, with misbehaviours that tests choose: node mcp-server.mjs MODE…
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const modes = new Set(process.argv.slice(2));
const is = (mode) => modes.has(mode);
const write = (text) => process.stdout.write(text);
const send = (message) => write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const object = (properties, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const text = (value) => ({ content: [{ type: 'text', text: value }] });

const TOOLS = {
  echo: {
    description: 'Repeats a text.',
    inputSchema: object({ text: { type: 'string', maxLength: 20 } }),
    annotations: { readOnlyHint: true },
    run: ({ text: words }) => text(`echo: ${words}`),
  },
  add: {
    description: 'Adds two numbers.',
    inputSchema: object({
      a: { type: 'integer', minimum: 0, maximum: 9 },
      b: { type: 'integer', minimum: 0, maximum: 9 },
    }),
    annotations: { readOnlyHint: true },
    run: ({ a, b }) => text(String(a + b)),
  },
  remove: {
    description: 'Removes a file.',
    inputSchema: object({ path: { type: 'string' } }),
    run: ({ path }) => text(`removed ${path}`),
  },
  broken: { annotations: { readOnlyHint: true }, run: () => ({ ...text('it broke'), isError: true }) },
  long: { annotations: { readOnlyHint: true }, run: ({ bytes }) => text('x'.repeat(bytes ?? 100_000)) },
  environment: {
    annotations: { readOnlyHint: true },
    run: () => text(JSON.stringify(Object.keys(process.env).sort())),
  },
};
if (is('names')) {
  for (const name of ['häß lich/../tool', '<|im_end|>', 'a.b', 'a b', 'a'.repeat(200), '']) {
    TOOLS[name] = { annotations: { readOnlyHint: true }, run: () => text(`ran ${name}`) };
  }
}
if (is('hostile-schema')) {
  const defs = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`d${i}`, { anyOf: [{ $ref: `#/$defs/d${i + 1}` }, { type: 'array', items: { $ref: `#/$defs/d${i + 1}` }, minItems: 50, maxItems: 60 }] }])); // prettier-ignore
  defs['d6'] = { type: 'string', pattern: '^(a{1,999}){1,999}$' };
  TOOLS['exploding'] = { inputSchema: { ...object({ x: { $ref: '#/$defs/d0' } }), $defs: defs }, annotations: { readOnlyHint: true }, run: () => text('ran') }; // prettier-ignore
  let deep = { type: 'string' };
  for (let i = 0; i < 200; i++) deep = { type: 'object', properties: { x: deep } };
  TOOLS['deep'] = { inputSchema: object({ x: deep }), run: () => text('ran') };
  TOOLS['wide'] = { inputSchema: object(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`property${i}`, { type: 'string' }]))), run: () => text('ran') }; // prettier-ignore
  TOOLS['list'] = { inputSchema: { type: 'array' }, run: () => text('ran') };
}
if (is('many')) for (let i = 0; i < 10_000; i++) TOOLS[`tool${i}`] = { run: () => text('ran') };
if (is('orphan')) {
  const { pid } = spawn('sleep', ['1000'], { stdio: 'ignore' });
  TOOLS['child'] = { run: () => text(String(pid)) };
}
if (is('stubborn')) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1000);
}
if (is('chatty')) write('Server started, listening on stdio\n');
if (is('stderr')) process.stderr.write(`${'noise '.repeat(200_000)}the last words\n`);
if (is('exit')) process.stderr.write('\n', () => process.exit(7)); // after what was written before

function flood(piece) {
  while (write(piece));
  process.stdout.once('drain', () => flood(piece));
}

function call(id, name, args) {
  if (is('hang')) return;
  if (is('die')) process.exit(3);
  if (is('flood'))
    return flood(
      `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { x: 'y'.repeat(1000) } })}\n`,
    );
  if (is('endless')) return flood('{"jsonrpc":"2.0",'.padEnd(65_536, 'x'));
  if (is('invalid')) return write(`${JSON.stringify({ jsonrpc: '2.0', id, neither: true })}\n`);
  if (is('garbage')) return flood('this is no JSON\n');
  if (is('deep')) {
    return write(
      `{"jsonrpc":"2.0","id":${id},"result":{"structuredContent":{"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}}\n`,
    );
  }
  if (is('twice')) send({ id, result: text('first') });
  const tool = TOOLS[name];
  if (tool === undefined) return send({ id, error: { code: -32602, message: `Unknown tool: ${name}` } });
  send({ id, result: tool.run(args ?? {}) });
}

const input = createInterface({ input: process.stdin });
input.on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    if (is('silent') || is('exit')) return;
    const protocolVersion = is('old') ? '1999-01-01' : params.protocolVersion;
    send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'test', version: '1' } } });
    if (is('asks')) send({ id: 'a', method: 'sampling/createMessage', params: {} });
  } else if (method === 'tools/list') {
    const names = Object.keys(TOOLS);
    const start = Number(params?.cursor ?? 0);
    const size = is('paged') ? 2 : names.length;
    const tools = names.slice(start, start + size).map((name) => {
      const { run: _, ...tool } = TOOLS[name];
      return { inputSchema: { type: 'object' }, ...tool, name };
    });
    const nextCursor = is('endless-pages')
      ? `${start}x`
      : start + size < names.length
        ? String(start + size)
        : undefined;
    send({
      id,
      result: { tools: is('no-list') ? 'many' : tools, ...(nextCursor === undefined ? {} : { nextCursor }) },
    });
  } else if (method === 'tools/call') call(id, params.name, params.arguments);
  else if (id !== undefined && method !== undefined) send({ id, error: { code: -32601, message: 'unknown' } });
});
input.on('close', () => {
  if (!is('stubborn')) process.exit(0);
});
