import { describe, expect, test } from 'vitest';
import { consentFor, DEFAULT_CONSENT } from './consent.ts';
import { readMessage } from './json-rpc.ts';
import { createLineReader } from './line-reader.ts';
import { readMcpServers } from './server-config.ts';
import { parseMessage } from './parse-message.ts';
import { readTool } from './tool-list.ts';
import { nameTools } from './tool-names.ts';
import { cutText, readToolResult } from './tool-result.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('lines of a process', () => {
  const limits = { maxMessageBytes: 20, maxBytesPerSend: 60, maxInvalidLines: 1 };

  test('become values, however they are split', () => {
    const text = '{"a":"ä"}\r\n\n[1]\n"x';
    const whole = bytes(text);
    for (let at = 0; at <= whole.length; at++) {
      const reader = createLineReader();
      const messages = [...reader.push(whole.subarray(0, at)), ...reader.push(whole.subarray(at))];
      expect(messages).toEqual([
        { kind: 'value', value: { a: 'ä' }, numBytes: 11 },
        { kind: 'value', value: [1], numBytes: 3 },
      ]);
    }
  });

  test.each([
    ['a line without an end', ['12345678901', '2345678901'], /more than 20 bytes/],
    [
      'a flood',
      ['"12345678"\n', '"12345678"\n', '"12345678"\n', '"12345678"\n', '"12345678"\n', '"12345678"\n'],
      /more than 60 bytes/,
    ],
    ['lines that are no JSON', ['a\nb\n'], /printed 2 lines that are no JSON/],
  ])('%s ends the connection', (_name, pieces, message) => {
    const reader = createLineReader(limits);
    expect(() => pieces.forEach((piece) => [...reader.push(bytes(piece))])).toThrow(message);
  });

  test('each message to the process grants the bytes of a reply', () => {
    const reader = createLineReader(limits);
    for (let i = 0; i < 10; i++) {
      reader.refill();
      expect([...reader.push(bytes('"12345678"\n"123"\n'))]).toHaveLength(2);
    }
  });
});

test.each([
  [null, null],
  [[], null],
  [{ jsonrpc: '1.0', id: 1, result: {} }, null],
  [{ jsonrpc: '2.0', id: 1 }, null],
  [{ jsonrpc: '2.0', id: {}, result: {} }, null],
  [{ jsonrpc: '2.0', id: 1, result: [] }, null],
  [{ jsonrpc: '2.0', id: 1.5, result: {} }, null],
  [{ jsonrpc: '2.0', method: 'x', params: [] }, null],
  [{ jsonrpc: '2.0', method: 'x', id: 'y'.repeat(257) }, null],
  [
    { jsonrpc: '2.0', id: 1, error: { code: 1, message: { toString: 1, valueOf: 1 } } },
    { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'an object, {"toString":1,"valueOf":1}' } },
  ],
  [
    { jsonrpc: '2.0', id: null, error: { code: 'x' } },
    { jsonrpc: '2.0', id: null, error: { code: -32603, message: 'undefined' } },
  ],
])('%j as a message', (value, expected) => {
  expect(readMessage(value)).toEqual(expected);
});

describe('a message beyond the limits', () => {
  const deep = (before: string, after = ''): Uint8Array =>
    bytes(`{${before}"x":${'['.repeat(100_000)}${']'.repeat(100_000)}${after}}`);

  test.each<[string, Uint8Array, unknown]>([
    ['id before', deep('"id" : 7 ,'), 7],
    ['id after', deep('', ',"jsonrpc":"2.0","id":"a\\"b"'), 'a"b'],
    ['no id', deep(''), null],
    ['id inside', deep('"y":{"id":3},"z":"\\"id\\":4",'), null],
    ['id of another type', deep('"id":{"id":5},'), null],
    ['a long id', deep(`"id":"${'x'.repeat(300)}",`), null],
    ['broken', bytes(`${'['.repeat(100_000)}"id":1`), null],
  ])('is not parsed, and is the answer to the request with its %s', (_name, message, id) => {
    expect(parseMessage(message)).toEqual({
      kind: 'excess',
      id,
      what: 'a message nested deeper than 512 levels',
      limit: 512,
    });
  });

  test('may have too many values', () => {
    const message = parseMessage(bytes(`{"id":1,"result":{"x":[${'[],'.repeat(100_000)}[]]}}`));
    expect(message).toMatchObject({
      kind: 'excess',
      id: 1,
      what: expect.stringMatching(/more than 500000 values/) as string,
    });
  });

  test('is no JSON if it is not UTF-8', () => {
    expect(parseMessage(Uint8Array.of(0x22, 0xff, 0x22))).toEqual({ kind: 'no JSON' });
  });
});

describe('names that the model sees', () => {
  const named = (...tools: string[]) =>
    tools.map((tool) => ({ server: tool.split(':')[0]!, name: tool.split(':')[1]! }));

  test('are those of the tools where they are unique', () => {
    expect(nameTools(named('files:read', 'web:fetch'))).toEqual(['read', 'fetch']);
  });

  test('have the server before them where two servers clash, so that none takes the place of the other', () => {
    expect(nameTools(named('files:search', 'web:search', 'web:fetch'))).toEqual([
      'files__search',
      'web__search',
      'fetch',
    ]);
  });

  test('never take the name of a function of the program', () => {
    expect(nameTools(named('files:read'), new Set(['read']))).toEqual(['files__read']);
    expect(nameTools(named('files:read'), new Set(['read', 'files__read']))).toEqual(['files__read_2']);
  });

  test('have only letters, digits, _ and -, at most 64, and stay different', () => {
    const names = nameTools(
      named('a:<|im_end|>', 'a:x y', 'a:x.y', 'a:x/y', `b:${'z'.repeat(128)}`, `c:${'z'.repeat(127)}`),
    );
    expect(names).toEqual([
      '__im_end__',
      'a__x_y',
      'a__x_y_2',
      'a__x_y_3',
      `b__${'z'.repeat(61)}`,
      `c__${'z'.repeat(61)}`,
    ]);
    for (const name of names) expect(name).toMatch(/^[\w-]{1,64}$/);
  });
});

describe('a listed tool', () => {
  const reasonOf = (tool: unknown): string => (readTool(tool) as { reason: string }).reason;
  const nested = (depth: number): object =>
    depth === 0 ? {} : { type: 'object', properties: { x: nested(depth - 1) } };

  test('is read-only only if it says exactly that', () => {
    const flag = (readOnlyHint: unknown) => (readTool({ name: 'x', annotations: { readOnlyHint } }) as { isReadOnly: boolean }).isReadOnly; // prettier-ignore
    expect([true, 'true', 1, false, null].map(flag)).toEqual([true, false, false, false, false]);
  });

  test.each([
    [{ inputSchema: {} }, /without a name/],
    [{ name: 'x'.repeat(129) }, /a name of 129 characters; the limit is 128/],
    [{ name: 'x', inputSchema: { type: 'array' } }, /not of type object/],
    [{ name: 'x', inputSchema: nested(40) }, /nested deeper than 32/],
    [
      { name: 'x', inputSchema: { type: 'object', description: 'y'.repeat(40_000) } },
      /of 40\d+ characters; the limit is 32768/,
    ],
  ])('%# is left out with its reason', (tool, reason) => {
    expect(reasonOf(tool)).toMatch(reason);
  });

  test('has a description of bounded length', () => {
    expect(readTool({ name: 'x', description: 'y'.repeat(10_000) })).toMatchObject({ description: 'y'.repeat(4096) });
  });
});

describe('a result', () => {
  test('is its texts; other content is described', () => {
    const content = [
      { type: 'text', text: 'one' },
      { type: 'image', mimeType: 'image/png', data: 'AAAA' },
      { type: 'resource', resource: { uri: 'file:///a', text: 'two' } },
      { type: 'resource_link', uri: 'file:///b', name: 'b' },
      { type: 'resource_link', uri: { toString: 1 }, name: [[]] },
      null,
      { type: 'unknown' },
    ];
    expect(readToolResult({ content }, 1000).text).toBe(
      [
        'one',
        '[image, image/png, 4 base64 characters; not shown]',
        'two',
        '[link to b: file:///b]',
        '[link to a list of 1 items, [[]]: an object, {"toString":1}]',
      ].join('\n'),
    );
  });

  test('is its structured content if it has no text', () => {
    expect(readToolResult({ structuredContent: { a: 1 } }, 1000).text).toBe('{"a":1}');
    expect(readToolResult({ content: 'x' }, 1000).text).toBe('');
  });

  test('is cut between characters', () => {
    expect(cutText('aäöü', 4)).toEqual({ text: 'aä\n[cut off: 4 of 7 bytes]', numBytes: 7, isCut: true });
  });
});

test('consent: the rule of the tool, else of the server, else by what the tool says of itself', () => {
  const reader = { name: 'read', description: '', inputSchema: {}, isReadOnly: true };
  const writer = { ...reader, name: 'write', isReadOnly: false };
  const tools = new Map([['write', 'allow' as const]]);
  expect([reader, writer].map((tool) => consentFor(DEFAULT_CONSENT, tool))).toEqual(['allow', 'ask']);
  expect([reader, writer].map((tool) => consentFor({ server: 'deny', tools }, tool))).toEqual(['deny', 'allow']);
});

describe('settings of servers', () => {
  const read = (section: unknown, environment: Record<string, string> = {}) =>
    readMcpServers(section, {
      environment,
      reject(path, message) {
        throw new Error(`${path}: ${message}`);
      },
      resolveFolder: (folder) => `/root/${folder}`,
    });

  test('have the form that other clients know', () => {
    const [files, web] = read(
      {
        files: { command: 'npx', args: ['-y', 'server', '${PLACE}'], env: { TOKEN: '${TOKEN}' }, cwd: 'here' },
        web: {
          type: 'http',
          url: 'https://example.com/mcp',
          headers: { Authorization: 'Bearer ${TOKEN}' },
          timeout: 5,
        },
      },
      { TOKEN: 't', PLACE: 'p' },
    );
    expect(files).toMatchObject({
      endpoint: {
        kind: 'stdio',
        command: 'npx',
        args: ['-y', 'server', 'p'],
        env: { TOKEN: 't' },
        folder: '/root/here',
      },
      timeoutMs: 60_000,
    });
    expect(web).toMatchObject({
      endpoint: { kind: 'http', url: 'https://example.com/mcp', headers: { Authorization: 'Bearer t' } },
      timeoutMs: 5000,
    });
  });

  test.each([
    [{ x: {} }, /"mcpServers.x" requires either command or url/],
    [{ x: { command: 'a', url: 'http://b' } }, /requires either command or url/],
    [{ x: { url: 'http://b', args: [] } }, /"mcpServers.x.args" requires command/],
    [{ x: { command: 'a', type: 'http' } }, /is http, which requires url/],
    [{ x: { url: 'file:///etc' } }, /must be an http or https URL/],
    [{ x: { command: 'a', env: { A: '${MISSING}' } } }, /names the environment variable MISSING, which is not set/],
    [{ x: { command: 'a', autoApprove: [] } }, /unknown setting "autoApprove"/],
    [{ x: { command: 'a', tools: { b: 'maybe' } } }, /must be an object of allow, ask or deny/],
    [{ x: { url: 'http://b', headers: { A: 'x\r\nB: y' } } }, /must be an object of header values/],
    [{ 'a b': { command: 'a' } }, /is not a name of 1 to 64 letters/],
  ])('%j is refused', (section, message) => {
    expect(() => read(section)).toThrow(message);
  });
});
