// Runs the marked blocks of the README and the guides unchanged, with a small random model.
//   ```sh run     a shell runs it, or node for js; `MODEL` and the server's address are filled in
//   ```text       directly after it: the expected output; `…` matches anything
//   ```sh serve   `ruvllm serve …`, which runs until the end of the page
//   ```json file=NAME   is written beside them
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { isServerBuilt } from './support/dist-server.ts';
import { type CodeBlock, readMarkdown } from './support/markdown.ts';
import { buildRandomModel } from './support/random-model.ts';
import { createServeFolder, type ServeFolder } from './support/serve-process.ts';
import { writeShellCommand } from './support/shell-command.ts';
import { shellCommands } from './support/shell-words.ts';

const root = join(import.meta.dirname, '..');
/** Their commands and servers are processes; those of the other pages run in this one. */
const PAGES_OF_PROCESSES = ['README.md', 'docs/chat.md'];
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
  readonly hasProcesses: boolean;
  url: string | null;
}

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

/** Inside the repository: a block imports the package by name, which only files of the package can. */
async function openPageFolder(modelBytes: Uint8Array, hasProcesses: boolean): Promise<PageFolder> {
  mkdirSync(join(root, '.cache'), { recursive: true });
  const folder = mkdtempSync(join(root, '.cache/docs-'));
  open.push(() => rmSync(folder, { recursive: true, force: true }));
  const serving = createServeFolder(shape);
  open.push(serving.dispose, serving.here.stopAll);
  writeFileSync(serving.model, modelBytes);
  mkdirSync(join(folder, 'bin'));
  const command = join(folder, 'bin/ruvllm');
  if (hasProcesses) {
    const line = `exec "${process.execPath}" "${join(root, 'bin/ruvllm.mjs')}" "$@"`;
    writeFileSync(command, `#!/bin/sh\n${line}\n`, { mode: 0o755 });
  } else {
    const socket = await writeShellCommand(command);
    const outside = process.cwd();
    process.chdir(folder); // A server of the page finds its files.
    open.push(() => (process.chdir(outside), socket[Symbol.dispose]()));
  }
  return { serving, folder, hasProcesses, url: null };
}

const filled = ({ serving, url }: PageFolder, text: string): string =>
  text.replaceAll(/\bMODEL\b/g, serving.model).replaceAll(DOCUMENTED_URL, url ?? DOCUMENTED_URL);

async function runBlock(page: PageFolder, { language, text }: CodeBlock): Promise<string> {
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
  const [error, stdout, stderr] = await new Promise<[Error | null, string, string]>((resolve) => {
    const child = execFile(program, args, { cwd: folder, env }, (...ended) => resolve(ended));
    child.stdin!.end();
  });
  expect(error, `${text}\n${stdout}${stderr}`).toBeNull();
  const printed = stdout.replaceAll('\r', ''); // Headers end in it.
  return page.url === null ? printed : printed.replaceAll(page.url, DOCUMENTED_URL);
}

async function serveBlock(page: PageFolder, { text }: CodeBlock): Promise<void> {
  const [command, ...more] = shellCommands(filled(page, text));
  expect([command?.words.slice(0, 2), more], text).toEqual([['ruvllm', 'serve'], []]);
  const { serving, hasProcesses } = page;
  page.url = (await (hasProcesses ? serving : serving.here).start(...command!.words.slice(2))).url;
}

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
      const page = await openPageFolder(isStory ? readFileSync(storyModel) : model, PAGES_OF_PROCESSES.includes(file));
      for (const [i, block] of blocks.entries()) {
        const [mark] = block.marks;
        if (mark === 'serve') await serveBlock(page, block);
        if (mark?.startsWith('file=')) writeFileSync(join(page.folder, mark.slice('file='.length)), block.text);
        if (mark !== 'run') continue;
        const printed = (await runBlock(page, block)).trim();
        const next = blocks[i + 1];
        if (next?.language === 'text' && isPrintCompared)
          expect(printed, `line ${next.line}`).toMatch(patternOf(next.text));
      }
    },
    240_000, // Dozens of processes on busy machines.
  );
});
