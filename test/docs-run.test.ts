// Runs the marked blocks of the README and the guides unchanged, with a small random model.
//   ```sh run     a shell runs it, or node for js; `MODEL` and the server's address are filled in
//   ```text       directly after it: the expected output; `…` matches anything
//   ```sh serve   `ruvllm serve …`, which runs until the end of the page
//   ```json file=NAME   is written beside them
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { type CodeBlock, readMarkdown } from './support/markdown.ts';
import { buildRandomModel } from './support/random-model.ts';
import { createServeFolder, type ServeFolder } from './support/serve-process.ts';
import { shellCommands } from './support/shell-words.ts';

const root = join(import.meta.dirname, '..');
const hasShell = ['bash', 'curl'].every((tool) => spawnSync(tool, ['--version']).status === 0);
if (!hasShell) console.log('skipped: the blocks of the guides need bash and curl');

const DOCUMENTED_URL = 'http://127.0.0.1:8080';
const TEMPLATE = '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:';
const metadata = [{ key: 'tokenizer.chat_template', type: 'string', value: TEMPLATE }] as const;
const shape = { contextLength: 512 };
const model = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 1, shape, metadata });
/** The README shows answers of this model; without it the blocks run, but their output is not compared. */
const storyModel = join(root, '../shared/models/stories15M-q8_0.gguf');
const hasStoryModel = existsSync(storyModel);
if (!hasStoryModel)
  console.log('skipped: the printed answers of the README need ../shared/models/stories15M-q8_0.gguf');

/** A pattern for the expected output of a block. */
function patternOf(text: string): RegExp {
  const escaped = text.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${escaped.replaceAll('…', '[^]*?')}$`);
}

interface PageFolder {
  readonly serving: ServeFolder;
  readonly folder: string;
  url: string | null;
}

/** Inside the repository: a block imports the package by name, which only files of the package can. */
function openPageFolder(modelBytes: Uint8Array): PageFolder {
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache/docs-'));
  const serving = createServeFolder(shape);
  writeFileSync(serving.model, modelBytes);
  mkdirSync(join(folder, 'bin'));
  const command = join(folder, 'bin/ruvllm');
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'bin/ruvllm.mjs')}" "$@"\n`);
  chmodSync(command, 0o755);
  return { serving, folder, url: null };
}

const filled = ({ serving, url }: PageFolder, text: string): string =>
  text.replaceAll(/\bMODEL\b/g, serving.model).replaceAll(DOCUMENTED_URL, url ?? DOCUMENTED_URL);

function runBlock(page: PageFolder, { language, text }: CodeBlock): string {
  const { folder, serving } = page;
  const env = {
    ...serving.environment,
    PATH: `${join(folder, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`,
    HF_HUB_OFFLINE: '1',
    RUVLLM_API_KEY: '',
    RUVLLM_MODEL: serving.model,
  };
  const file = join(folder, language === 'js' ? 'block.mjs' : 'block.sh');
  writeFileSync(file, filled(page, text));
  const [program, args] = language === 'js' ? [process.execPath, [file]] : ['bash', ['-eu', '-o', 'pipefail', file]];
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8', timeout: 600_000 });
  expect(status, `${text}\n${stdout}${stderr}`).toBe(0);
  const printed = stdout.replaceAll('\r', ''); // Headers end in it.
  return page.url === null ? printed : printed.replaceAll(page.url, DOCUMENTED_URL);
}

async function serveBlock(page: PageFolder, { text }: CodeBlock): Promise<void> {
  const [command, ...more] = shellCommands(filled(page, text));
  expect([command?.words.slice(0, 2), more], text).toEqual([['ruvllm', 'serve'], []]);
  const inFolder = (word: string): string => (existsSync(join(page.folder, word)) ? join(page.folder, word) : word);
  page.url = (await page.serving.start(...command!.words.slice(2).map(inFolder))).url;
}

const open: PageFolder[] = [];
afterAll(() => {
  for (const { folder, serving } of open) {
    serving.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
});

const isMarked = ({ marks }: CodeBlock): boolean => marks.length > 0;
const guides = ['README.md', ...readdirSync(join(root, 'docs')).map((file) => `docs/${file}`)]
  .filter((file) => file.endsWith('.md'))
  .map((file) => [file, readMarkdown(readFileSync(join(root, file), 'utf8')).blocks] as const)
  .filter(([, blocks]) => blocks.some(isMarked));

test('all marks are valid', () => {
  const marks = guides.flatMap(([, blocks]) => blocks.flatMap((block) => block.marks));
  expect(marks.filter((mark) => !/^(?:run|serve|file=[\w.-]+)$/.test(mark))).toEqual([]);
});

describe.skipIf(!isServerBuilt || !hasShell)('the marked blocks of', () => {
  test.each(guides)(
    '%s work as written',
    async (file, blocks) => {
      const isStory = file === 'README.md' && hasStoryModel;
      const isPrintCompared = file !== 'README.md' || hasStoryModel;
      const page = openPageFolder(isStory ? readFileSync(storyModel) : model);
      open.push(page);
      for (const [i, block] of blocks.entries()) {
        const [mark] = block.marks;
        if (mark === 'serve') await serveBlock(page, block);
        if (mark?.startsWith('file=')) writeFileSync(join(page.folder, mark.slice('file='.length)), block.text);
        if (mark !== 'run') continue;
        const printed = runBlock(page, block).trim();
        const next = blocks[i + 1];
        if (next?.language === 'text' && isPrintCompared)
          expect(printed, `line ${next.line}`).toMatch(patternOf(next.text));
      }
      page.serving.killAll();
    },
    240_000, // Dozens of processes on busy machines.
  );
});
