// A chat template that replaces the model's own: library, command line and server.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from '../support/dist-server.ts';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

const TEMPLATE = '{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %} =>';
const BROKEN = '{% for m in messages %}\n  {{ m.content }\n{% endfor %}';

async function render(url: string, content: string): Promise<string> {
  const response = await fetch(`${url}/apply-template`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content }] }),
  });
  return ((await response.json()) as { prompt: string }).prompt;
}

describe.skipIf(!isServerBuilt)('a template of the caller', () => {
  let server: DistServer;
  beforeAll(async () => {
    server = await startDistServer({ contextLength: 8192 }, { chatTemplate: TEMPLATE });
  });
  afterAll(async () => server[Symbol.asyncDispose]());

  test('renders chats in this thread and in the thread for long texts', async () => {
    expect(server.model.modelInfo().chatTemplate).toBe('custom');
    expect(await render(server.url, 'hi')).toMatch(/\[user\] hi =>$/);
    const long = 'ab '.repeat(2000);
    expect(await render(server.url, long)).toContain(`[user] ${long}`);
    const prompt = [{ role: 'user', content: long }] as const;
    expect(await server.model.aside.encodePrompt(prompt)).toEqual(server.model.encodePrompt(prompt));
  });

  test('is used for answers', async () => {
    const { model, url } = server;
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 4, temperature: 0 }),
    });
    const { choices } = (await response.json()) as { choices: { message: { content: string } }[] };
    const expected = await model.generate('[user] hi =>', { maxTokens: 4, temperature: 0, parseSpecial: true });
    expect(choices[0]!.message.content).toBe(expected.text);
  });
});

describe.skipIf(!isServerBuilt)('ruvllm serve', () => {
  let folder: ServeFolder;
  const file = (name: string, text: string): string => {
    const path = join(dirname(folder.model), name);
    writeFileSync(path, text);
    return path;
  };
  beforeAll(() => {
    folder = createServeFolder({ contextLength: 128 });
  });
  afterEach(() => folder.here.stopAll());
  afterAll(() => folder.dispose());

  test('--chat-template-file and --chat-template replace the template', async () => {
    const fromFile = await folder.here.start(folder.model, '--chat-template-file', file('good.jinja', TEMPLATE));
    expect(await render(fromFile.url, 'hi')).toMatch(/\[user\] hi =>$/);
    const named = await folder.here.start(folder.model, '--chat-template', 'chatml');
    expect(await render(named.url, 'hi')).toContain('<|im_start|>user\nhi<|im_end|>');
  });

  test.each<[string, readonly string[], RegExp]>([
    ['a template that does not parse', ['--chat-template', BROKEN], /does not parse: .*\(line 2, column 3\)/],
    ['an unknown name', ['--chat-template', 'chatmk'], /no built-in chat template "chatmk" \(available: chatml, /],
    ['a missing file', ['--chat-template-file', 'none.jinja'], /--chat-template-file cannot be read: .*none\.jinja/],
    ['both', ['--chat-template-file', 'a', '--chat-template', 'chatml'], /cannot be combined with --chat-template/],
  ])('refuses %s at the start', async (_what, flags, message) => {
    const { status, stdout } = await folder.here.run('serve', folder.model, '--port', '0', ...flags);
    expect(status).not.toBe(0);
    expect(JSON.parse(stdout).error.message).toMatch(message);
  });
});
