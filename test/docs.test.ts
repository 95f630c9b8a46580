// Everything the documentation names exists: commands and options, routes, links, scripts, files, exports, variables.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS } from '../src/cli/commands.ts';
import { parseCommand } from '../src/cli/program.ts';
import { describeRoutes } from '../src/server/routes/openapi.ts';
import { MISSING_DASHBOARD } from '../src/server/dashboard-files.ts';
import { dashboardRoutes } from '../src/server/routes/dashboard.ts';
import { OWN_SCOPES } from '../src/gateway/gateway.ts';
import { ROUTES } from '../src/server/routes/table.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { type MarkdownPage, readMarkdown } from './support/markdown.ts';
import { type ShellCommand, shellCommands } from './support/shell-words.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const filesIn = (folder: string, ending: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(folder, file).replaceAll('\\', '/'));

const PATHS = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'examples/README.md',
  ...filesIn('docs', '.md').sort(),
];
const pages = new Map(PATHS.map((path) => [path, readMarkdown(read(path))]));
/** Generated pages have their own test, and the log describes the past. */
const isWritten = (path: string): boolean => !path.startsWith('docs/api/') && path !== 'docs/log.md';
const handwritten = [...pages].filter(([path]) => isWritten(path));

/** All code, inline and in blocks. */
const codeOf = ({ codes, blocks }: MarkdownPage): string[] => [...codes, ...blocks.map(({ text }) => text)];
const SHELLS = ['sh', 'bash', 'console'];

const actions = new Map<string, readonly string[]>();
const flags = new Map<string, ReadonlySet<string>>();
beforeAll(async () => {
  for (const { name, help, flags: flagsOf } of COMMANDS) {
    flags.set(name, new Set(['--json', '--config', '--help', ...(await flagsOf()).map((flag) => flag.name)]));
    if (help === undefined) continue;
    const listed = ((await help()).actions ?? []).map((action) => action.name);
    if (listed.length > 0) actions.set(name, listed);
  }
});

/** Treats `[MODEL …]` of a usage line as an argument. */
const plain = (words: readonly string[]): string[] =>
  words.map((word) => word.replaceAll(/^\[|\]$/g, '')).filter((word) => word !== '…' && word !== '');

/** The fault of one of our command lines, or null. `isMention`: a mentioned command need not be complete. */
async function wrongWith(args: readonly string[], comment: string, isMention: boolean): Promise<string | null> {
  const words = plain(args);
  const [name = '', action] = words;
  if (name === '--version' || name === '--help' || name === '') return null;
  const validFlags = flags.get(name);
  if (validFlags === undefined) return `there is no command ${name}`;
  const unknown = (comment.match(/--[a-z][a-z-]*/g) ?? []).find((flag) => !validFlags.has(flag));
  if (unknown !== undefined) return `${name} has no option ${unknown}`;
  const listed = actions.get(name);
  if (listed !== undefined && action !== undefined && /^[a-z][a-z-]*$/.test(action) && !listed.includes(action)) {
    return `${name} has no action ${action}`;
  }
  const quiet = { columns: 80, out: () => {}, err: () => {} };
  try {
    await parseCommand(words, '0.0.0', quiet);
    return null;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const isFine = code === 'commander.helpDisplayed' || (isMention && code === 'commander.missingArgument');
    return isFine ? null : message;
  }
}

const words = (text: string): readonly string[] => text.trim().split(/\s+/);
/** Routes and options of other programs that pages compare with ours. */
const FOREIGN: Readonly<Record<string, readonly string[]>> = {
  'docs/coming-from-llama-server.md': words(`
    /embedding --lora --lora-scaled --slot-save-path --cache-reuse --metrics --slots --props
    --embeddings --jinja --no-webui --ctx-size --parallel --batch-size --reranking --ssl-key-file`),
};
const isForeign = (path: string, name: string): boolean => FOREIGN[path]?.includes(name) === true;

/** External commands allowed after a pipe. */
const TOOLS = new Set(['grep', 'cut']);

/** The arguments of every `ruvllm …`; after a pipe another command, or another action of the same, may follow. */
function ourCommands(commands: readonly ShellCommand[]): { words: readonly string[]; comment: string }[] {
  let last = '';
  return commands.flatMap(({ words, comment, isPiped }) => {
    const isBehind =
      (words[0] === 'node' && words[1] === 'bin/ruvllm.mjs') || (words[0] === 'npx' && words[1] === 'ruvllm');
    if (words[0] === 'ruvllm' || isBehind) {
      const args = words.slice(isBehind ? 2 : 1);
      last = args[0] ?? '';
      return [{ words: args, comment }];
    }
    if (!isPiped || last === '' || TOOLS.has(words[0]!)) return [];
    if (flags.has(words[0]!)) return [{ words, comment: '' }];
    return actions.has(last) ? [{ words: [last, ...words], comment: '' }] : [];
  });
}

describe.each(handwritten)('%s', (path, page) => {
  test('names existing commands and options', async () => {
    const wrong: string[] = [];
    const check = async (text: string, isMention: boolean): Promise<void> => {
      for (const { words, comment } of ourCommands(shellCommands(text))) {
        const reason = await wrongWith(words, comment, isMention);
        if (reason !== null) wrong.push(`ruvllm ${words.join(' ')}: ${reason}`);
      }
    };
    for (const { language, text } of page.blocks) if (SHELLS.includes(language)) await check(text, false);
    for (const code of page.codes) if (code.startsWith('ruvllm ')) await check(code, true);
    const all = new Set([...flags.values()].flatMap((one) => [...one]));
    for (const code of page.codes.filter((one) => one.startsWith('--'))) {
      const unknown = (code.match(/(?<=^|\s)--[a-z][a-z-]*/g) ?? []).filter(
        (flag) => !all.has(flag) && !isOfScripts(flag) && !isForeign(path, flag),
      );
      wrong.push(...unknown.map((flag) => `${flag}: no command has it`));
    }
    expect(wrong).toEqual([]);
  });

  test('names existing routes', () => {
    const names = codeOf(page).flatMap((code) => routesIn(code));
    const isOther = (one: string): boolean => isSlashCommand(one) || isInstalledPath(one) || isForeign(path, one);
    expect(names.filter((one) => !isRoute(one) && !isOther(one))).toEqual([]);
  });

  test('calls missing only what does not exist', () => {
    const foreign = FOREIGN[path] ?? [];
    const serveFlags = flags.get('serve')!;
    expect(foreign.filter((name) => (name.startsWith('/') ? isRoute(name) : serveFlags.has(name)))).toEqual([]);
  });

  test('names existing scripts and benches', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const wrong: string[] = [];
    for (const code of codeOf(page)) {
      for (const [all, script, topic] of code.matchAll(/\bnpm run ([\w:-]+)(?: -- ([\w-]+))?/g)) {
        if (!Object.hasOwn(scripts, script!)) wrong.push(all);
        if (script === 'bench' && topic !== undefined && !existsSync(join(root, `bench/${topic}.bench.ts`)))
          wrong.push(all);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('names existing files', () => {
    const names = page.codes.filter((code) => /^(?:src|test|bench|docs|examples|scripts|bin)\/[\w./-]+$/.test(code));
    expect(names.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  test('names only variables that the code reads', () => {
    const names = codeOf(page).flatMap((code) => code.match(/\b(?:RUVLLM|HF)_[A-Z_]+\b/g) ?? []);
    expect(names.filter((name) => !sources().includes(name))).toEqual([]);
  });

  test.skipIf(!isServerBuilt)('imports only exported names', async () => {
    const wrong: string[] = [];
    for (const { language, text } of page.blocks) {
      if (language !== 'js') continue;
      for (const [, names, from] of text.matchAll(/import \{([^}]+)\} from '(ruvllm[^']*)'/g)) {
        const exported = (await import(/* @vite-ignore */ from!)) as object;
        for (const name of names!.split(',')) if (!(name.trim() in exported)) wrong.push(`${name.trim()} of ${from!}`);
      }
    }
    expect(wrong).toEqual([]);
  });
});

test.each([...pages])('the links of %s work', (path, { links }) => {
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? path : normalize(join(dirname(path), file)).replaceAll('\\', '/');
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && pages.get(target)?.anchors.has(anchor) !== true;
  });
  expect(broken).toEqual([]);
});

test('the index links every page', () => {
  const linksOf = (folder: string): string[] =>
    pages.get(`${folder}/README.md`)!.links.map((link) => normalize(join(folder, link)));
  const index = [...linksOf('docs'), ...linksOf('docs/decisions')];
  const guides = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md') && file !== 'README.md');
  for (const file of [
    ...guides.map((one) => `docs/${one}`),
    ...filesIn('docs/decisions', '.md'),
    'docs/api/README.md',
  ]) {
    expect(index, `an index names ${file}`).toContain(normalize(file));
  }
});

test('guides are short', () => {
  const guides = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md'));
  const long = guides.filter(
    (file) =>
      !['architecture.md', 'benchmarks.md', 'dashboard-api.md', 'log.md'].includes(file) &&
      read(`docs/${file}`).split('\n').length > 121,
  );
  expect(long).toEqual([]);
});

test('the README fits on one page', () => {
  expect(read('README.md').split('\n').length).toBeLessThanOrEqual(151);
});

/** Options of the scripts in this repository, which have no option table. */
const isOfScripts = (flag: string): boolean =>
  scriptText().includes(`'${flag}'`) ||
  new RegExp(`(?:'${flag.slice(2)}'|\\b${flag.slice(2)}): \\{ type:`).test(scriptText());
const once = (make: () => string): (() => string) => {
  let text: string | null = null;
  return () => (text ??= make());
};
const scriptText = once(() => [...filesIn('scripts', '.mjs'), ...filesIn('bench', '.ts')].map(read).join('\n'));
const sources = once(() =>
  [...filesIn('src', '.ts'), ...filesIn('test/support', '.ts'), ...filesIn('scripts', '.mjs')].map(read).join('\n'),
);
const slashCommands = once(() => read('src/cli/chat/slash-commands.ts'));

const { paths } = (await describeRoutes([...ROUTES, ...dashboardRoutes(MISSING_DASHBOARD)], '0')) as {
  paths: Record<string, Record<string, object>>;
};

/** `/v1/models` and `POST /v1/models` in code, and the paths of local URLs. */
function routesIn(code: string): string[] {
  const inUrls = Array.from(code.matchAll(/https?:\/\/127\.0\.0\.1(?::\d+)?(\/[\w/{}.…-]+)/g), ([, path]) => path!);
  const alone = /^(?:(?:GET|POST|DELETE|PUT|PATCH) )?\/[a-z][\w/{}.…?=-]*$/.test(code) ? [code] : [];
  const called = Array.from(code.matchAll(/(?:fetch|post)\([`'"](?:\$\{\w+\})?(\/[\w/]+)/g), ([, path]) => path!);
  return [...inUrls, ...alone, ...called];
}

/** A route, the prefix of some (`/admin/memory/…`), or a route with a parameter filled in. */
function isRoute(text: string): boolean {
  const [, method, target] = /^(?:([A-Z]+) )?(.*)$/.exec(text)!;
  const path = target!.replace(/\?.*$/, '');
  if (path === '/v1' || path === '/v1/' || Object.hasOwn(OWN_SCOPES, path)) return true;
  if (/(?:\/|\/…)$/.test(path)) return Object.keys(paths).some((one) => one.startsWith(path.replace(/…$/, '')));
  return Object.entries(paths).some(([template, operations]) => {
    const pattern = new RegExp(`^${template.replaceAll('.', String.raw`\.`).replaceAll(/\{\w+\}/g, '[^/]+')}$`);
    return pattern.test(path) && (method === undefined || Object.hasOwn(operations, method.toLowerCase()));
  });
}

/** Folders and files of an installation. */
const isInstalledPath = (text: string): boolean => /^\/(?:data|etc|var)(?:\/|$)/.test(text);
const isSlashCommand = (text: string): boolean => slashCommands().includes(`'${text}': {`);
