// Images in prompts, through the library, the HTTP API and the command line, with a random projector.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DistServer, isServerBuilt, startDistServer } from './support/dist-server.ts';
import { importDist } from './support/import-dist.ts';
import { paintPng } from './support/make-png.ts';
import { buildRandomModel } from './support/random-model.ts';
import { buildRandomVision, imageVocabulary, VISION_TOKENS } from './support/random-vision.ts';
import { runCommand } from './support/run-command.ts';

const DIM = 96;
const red = paintPng(30, 20, (x) => [255, x * 8, 0]);
const blue = paintPng(24, 24, (x, y) => [0, y * 10, 255 - x * 9]);
const urlOf = (image: Uint8Array): string => `data:image/png;base64,${Buffer.from(image).toString('base64')}`;
const parts = (...content: (string | Uint8Array)[]) =>
  content.map((part) =>
    typeof part === 'string' ? { type: 'text', text: part } : { type: 'image_url', image_url: { url: urlOf(part) } },
  );

interface Answer {
  readonly status: number;
  readonly text: string;
  /** Log-probabilities of the answer: they differ even where a random model says the same. */
  readonly numbers: string;
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
  readonly error: { readonly message: string; readonly code: string };
}

describe.skipIf(!isServerBuilt)('images in prompts', () => {
  let folder: string;
  let server: DistServer;
  let mmproj: string;
  const save = (name: string, bytes: Uint8Array): string => {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
  };
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ruvllm-vision-'));
    mmproj = save('mmproj.gguf', buildRandomVision({ outputDim: DIM }));
    server = await startDistServer({ metadata: imageVocabulary() }, { mmproj, chatTemplate: 'chatml' });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const post = (path: string, body: object, url = server.url): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'random', ...body }),
    });
  async function ask(content: unknown, url = server.url): Promise<Answer> {
    const messages = [{ role: 'user', content }];
    const response = await post(
      '/v1/chat/completions',
      { messages, max_tokens: 8, temperature: 0, logprobs: true },
      url,
    );
    const body = (await response.json()) as Answer & { choices?: { message: { content: string }; logprobs: object }[] };
    const choice = body.choices?.[0];
    const numbers = JSON.stringify(choice?.logprobs);
    return { ...body, status: response.status, text: choice?.message.content ?? '', numbers };
  }

  test('an image changes the answer, and the same image is found in the prefix cache', async () => {
    const first = await ask(parts('what ', red, 'is it'));
    expect(first).toMatchObject({ status: 200 });
    const again = await ask(parts('what ', red, 'is it'));
    expect(again).toMatchObject({ text: first.text, numbers: first.numbers });
    expect(again.usage.prompt_tokens_details.cached_tokens).toBe(first.usage.prompt_tokens - 1);
    const other = await ask(parts('what ', blue, 'is it'));
    expect(other.numbers).not.toBe(first.numbers);
    expect(other.usage.prompt_tokens).toBe(first.usage.prompt_tokens);
    // Only the text before the image is shared.
    const before = other.usage.prompt_tokens_details.cached_tokens;
    expect(before).toBeLessThan(first.usage.prompt_tokens - VISION_TOKENS);
    const none = await ask('what is it');
    expect(first.usage.prompt_tokens - none.usage.prompt_tokens).toBeGreaterThanOrEqual(VISION_TOKENS + 3);
  });

  test('models and properties say that the model sees images', async () => {
    const read = async (path: string) => (await (await fetch(`${server.url}${path}`)).json()) as object;
    expect(await read('/v1/models')).toMatchObject({ data: [{ id: 'random', capabilities: { vision: true } }] });
    expect(await read('/props')).toMatchObject({ modalities: { vision: true, audio: false } });
  });

  test('the order of images and their place in the text count', async () => {
    const answers = [
      await ask(parts(red, blue, 'compare')),
      await ask(parts(blue, red, 'compare')),
      await ask(parts(red, 'compare', blue)),
    ].map(({ numbers }) => numbers);
    expect(new Set(answers).size).toBe(3);
  });

  test('every API and the library give the same answer', async () => {
    const { text } = await ask(parts(red, 'name it'));
    const answer = { max_tokens: 8, temperature: 0 };
    const source = { type: 'base64', media_type: 'image/png', data: Buffer.from(red).toString('base64') };
    const anthropic = await post('/v1/messages', {
      ...answer,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'text', text: 'name it' },
          ],
        },
      ],
    });
    expect(((await anthropic.json()) as { content: { text: string }[] }).content[0]!.text).toBe(text);
    const image = { type: 'input_image', image_url: urlOf(red) };
    const responses = await post('/v1/responses', {
      max_output_tokens: 8,
      temperature: 0,
      input: [{ role: 'user', content: [image, { type: 'input_text', text: 'name it' }] }],
    });
    const { output } = (await responses.json()) as { output: { content: { text: string }[] }[] };
    expect(output[0]!.content[0]!.text).toBe(text);
    for (const file of [red, urlOf(red)]) {
      const content = [{ type: 'image', image: file } as const, { type: 'text', text: 'name it' } as const];
      const prompt = [{ role: 'user', content }];
      const result = await server.model.generate(prompt, { maxTokens: 8, temperature: 0 });
      expect(result.text).toBe(text);
      expect((await server.model.cachedTokens(prompt)).cachedTokens).toBe(result.usage.promptTokens - 1);
    }
  });

  test('long texts with images are prepared in the text thread alike', async () => {
    const long = 'ab '.repeat(120);
    const prompt = [
      { role: 'user', content: [{ type: 'image', image: red } as const, { type: 'text', text: long } as const] },
    ];
    const ids = server.model.encodePrompt(prompt);
    const { usage } = await server.model.generate(prompt, { maxTokens: 1 });
    expect(usage.promptTokens).toBe(ids.length);
  });

  test('a user cannot write the tokens of an image', async () => {
    const { model } = server;
    const imageId = model.tokenizer.idOf('<image>')!;
    expect(model.encodePrompt([{ role: 'user', content: 'a <image> b' }])).not.toContain(imageId);
    const mixed = await ask(parts('<image>', red));
    expect(mixed.status).toBe(200);
  });

  test.each<[string, unknown, string, RegExp]>([
    [
      'a remote URL',
      [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
      'unsupported',
      /not fetched/,
    ],
    ['bad base64', [{ type: 'image_url', image_url: { url: 'data:image/png;base64,@@' } }], 'invalid', /base64/],
    ['text as an image', parts(new TextEncoder().encode('hello')), 'invalid', /neither PNG nor JPEG/],
    ['a truncated image', parts(red.subarray(0, 60)), 'invalid', /truncated|ends at byte/],
    ['a GIF', parts(new TextEncoder().encode('GIF89a')), 'unsupported', /GIF/],
    ['too many images', parts(...Array.from({ length: 33 }, () => red)), 'invalid', /33 images.*32/],
  ])('answers %s with 400', async (_what, content, _code, message) => {
    const { status, error } = await ask(content);
    expect(status).toBe(400);
    expect(error.message).toMatch(message);
    expect((await ask(parts(red, 'still works'))).status).toBe(200);
  });

  test('the prefix tree shows the text around images', async () => {
    await ask(parts('what ', red, 'is it'));
    const response = await fetch(`${server.url}/admin/prefix-tree`);
    expect(response.status).toBe(200);
    const { nodes } = (await response.json()) as { nodes: { text: string }[] };
    expect(nodes.length).toBeGreaterThan(0);
  });

  test('a model without a projector answers 400', async () => {
    await using blind = await startDistServer();
    const { status, error } = await ask(parts(red, 'hi'), blind.url);
    expect(status).toBe(400);
    expect(error).toMatchObject({ message: expect.stringMatching(/without a projector/) });
  });

  test('the projector of another model is refused with both numbers', async () => {
    const { loadModel } = await importDist<typeof import('../src/index.ts')>('index.js');
    const metadata = imageVocabulary();
    const path = save('model.gguf', buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, metadata }));
    const config = { kernels: 'wasm', numThreads: 1 } as const;
    const wrong = save('wrong.gguf', buildRandomVision({ outputDim: 64 }));
    await expect(loadModel(path, { ...config, mmproj: wrong })).rejects.toMatchObject({
      code: 'invalid_option',
      data: { projectorDim: 64, embeddingDim: DIM },
    });
    const plain = save('plain.gguf', buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7 }));
    await expect(loadModel(plain, { ...config, mmproj })).rejects.toMatchObject({
      message: expect.stringMatching(/no <fake_token_around_image>, <global-img>, <image>/),
    });
    await expect(loadModel(path, { ...config, mmproj: path })).rejects.toMatchObject({ code: 'invalid_option' });
  });

  test('ruvllm run --image', async () => {
    const metadata = imageVocabulary();
    const model = save('run.gguf', buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, metadata }));
    const environment = { ...process.env, RUVLLM_KERNELS: 'wasm', RUVLLM_DATA_DIR: join(folder, 'data') };
    const run = (...args: string[]) =>
      runCommand(['run', model, 'name it', '--max-tokens', '8', '--temperature', '0', ...args], { environment });
    const [first, second] = [save('red.png', red), save('blue.png', blue)];
    const one = await run('--mmproj', mmproj, '--image', first);
    expect(one).toMatchObject({ status: 0 });
    const two = await run('--mmproj', mmproj, '--image', second);
    expect(two.stdout).not.toBe(one.stdout);
    expect((await run('--image', first)).stderr).toMatch(/--image requires --mmproj/);
    expect((await run('--mmproj', mmproj, '--image', model)).stderr).toMatch(/neither PNG nor JPEG/);
    expect((await run('--mmproj', mmproj, '--image', 'none.png')).stderr).toMatch(/--image cannot be read/);
  });
});
