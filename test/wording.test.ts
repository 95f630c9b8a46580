// User-facing text, comments and test titles follow the rules of plain English that a machine can check; docs/glossary.md has the terms.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { textsOfComments, textsOfMarkdown, textsOfSource, type UserText } from './support/user-text.ts';

interface WordingRule {
  readonly pattern: RegExp;
  readonly instead: string;
}

const RULES: readonly WordingRule[] = [
  { pattern: /, for (?:there|it|they|nobody|nothing|without)\b/i, instead: 'because' },
  { pattern: /\b(?:is|are) nothing without\b/i, instead: 'requires' },
  { pattern: /\b(?:nobody|whoever)\b/i, instead: 'name the subject' },
  {
    pattern: /\b(?:tokens?|requests?|bytes|words|steps|times|generated|prompt) a (?:second|minute)\b/i,
    instead: 'tokens/s, per second, per minute',
  },
  { pattern: /\b(?:is|are|was|were) not there\b/i, instead: 'not found, missing' },
  { pattern: /\bis another thing\b/i, instead: 'unrelated' },
  { pattern: /\bwitness(?:es)?\b/i, instead: 'audit log, audit entry' },
  { pattern: /\bknown beginnings?\b/i, instead: 'prefix cache' },
  { pattern: /\bpages? given up\b/i, instead: 'evicted' },
];
/** As a subject; a question may start like this. */
const WHAT_CLAUSE = /(?:^|[.!?:] )(?:What (?:is|are|was|were|has|can|cannot)|That which)\b[^.!?]*(?:[.!?]|$)/g;

/** In comments, no sentence begins so. */
const ANY_WHAT_CLAUSE = /(?:^|[.!?:] )(?:What|That which)\b[^.!?]*(?:[.!?]|$)/g;

/** The complaints about one text. */
function complaintsAbout(text: string, whatClause = WHAT_CLAUSE): string[] {
  const broken = RULES.flatMap(({ pattern, instead }) => {
    const match = pattern.exec(text)?.[0];
    return match === undefined ? [] : [`"${match}" (say: ${instead})`];
  });
  const clauses = (text.match(whatClause) ?? []).filter((clause) => !clause.endsWith('?'));
  return [...broken, ...clauses.map((clause) => `"${clause.slice(0, 60)}" (name the subject)`)];
}

const root = join(import.meta.dirname, '..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const filesIn = (folder: string, pattern: RegExp): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => join(folder, file).replaceAll('\\', '/'))
    .filter((file) => pattern.test(file) && !EXEMPT.includes(file));
const sourcesIn = (folder: string): string[] =>
  filesIn(folder, /\.tsx?$/).filter(
    (file) => !/\.(?:test|contract|d)\.tsx?$|^src\/kernels\/wasm\/assembly\//.test(file),
  );

const complaintsIn = (path: string, texts: readonly UserText[], whatClause = WHAT_CLAUSE): string[] =>
  texts.flatMap(({ text, line }) =>
    complaintsAbout(text, whatClause).map((complaint) => `${path}:${line}: ${complaint}`),
  );

/** Records and logs keep the words of their date; docs/api is generated from comments. */
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'examples/README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((file) => file.endsWith('.md') && file !== 'log.md')
    .map((file) => `docs/${file}`),
];
/** Contains the prompt of a benchmark, which is not user-facing. */
const EXEMPT = ['src/runtime/measure-speed.ts'];
/** Folders whose strings are all user-facing. */
const TEXT_FOLDERS = ['src/cli', 'dashboard/src'];
/** Folders with error messages. */
const ERROR_FOLDERS = readdirSync(join(root, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && entry.name !== 'cli')
  .map(({ name }) => `src/${name}`)
  .sort();
/** Folders whose comments and test titles are checked, too. */
const COMMENT_FOLDERS = [
  'src/adapters',
  'src/chat',
  'src/cli',
  'src/core',
  'src/engine',
  'src/gguf',
  'src/hub',
  'src/kernels',
  'src/kv-cache',
  'src/learning',
  'src/memory',
  'src/models',
  'src/quant',
  'src/runtime/answers',
  'src/runtime/learning',
  'src/runtime/memory',
  'src/runtime/requests',
  'src/runtime/routing',
  'src/sampling',
  'src/server',
  'src/tokenizers',
];

describe('plain English', () => {
  test.each(PAGES)('in %s', (path) => {
    expect(complaintsIn(path, textsOfMarkdown(read(path)))).toEqual([]);
  });

  test.each(TEXT_FOLDERS)('in the strings of %s', (folder) => {
    const complaints = sourcesIn(folder).flatMap((path) =>
      complaintsIn(path, textsOfSource(path, read(path), { inErrors: false })),
    );
    expect(complaints).toEqual([]);
  });

  test.each(ERROR_FOLDERS)('in the error messages of %s', (folder) => {
    const complaints = sourcesIn(folder).flatMap((path) =>
      complaintsIn(path, textsOfSource(path, read(path), { inErrors: true })),
    );
    expect(complaints).toEqual([]);
  });

  test.each(COMMENT_FOLDERS)('in the comments and test titles of %s', (folder) => {
    const complaints = filesIn(folder, /\.(?:ts|c|h|md)$/).flatMap((path) => {
      const texts = path.endsWith('.md') ? textsOfMarkdown(read(path)) : textsOfComments(path, read(path));
      return complaintsIn(path, texts, ANY_WHAT_CLAUSE);
    });
    expect(complaints).toEqual([]);
  });
});

describe('the check', () => {
  test.each([
    ['learning is off, for there is no memory', 'because'],
    ['--learning-rate is nothing without learning', 'requires'],
    ['Nobody asked anything like it.', 'name the subject'],
    ['Generated a second', 'tokens/s'],
    ['30 tokens a second', 'tokens/s'],
    ['the file is not there', 'not found'],
    ['the witness log', 'audit log'],
    ['Known beginnings', 'prefix cache'],
    ['0 pages given up', 'evicted'],
    ['What is refused is written down.', 'name the subject'],
    ['It stops. What was added stays', 'name the subject'],
    ['That which waits is next.', 'name the subject'],
  ])('rejects "%s"', (text, instead) => {
    expect(complaintsAbout(text).join()).toContain(instead);
  });

  test.each([
    'What is the capital of France?',
    'wait a second',
    'The server waits for it.',
    'for the next start, too',
    'found at index 3',
  ])('accepts "%s"', (text) => {
    expect(complaintsAbout(text)).toEqual([]);
  });

  test('reads prose of Markdown and skips code', () => {
    const page =
      '# Title\n\nFirst line\nsecond `nobody` line.\n\n- item [link](nobody.md)\n\n```sh\nnobody\n```\n\n| a | nobody |\n';
    const complaints = complaintsIn('page.md', textsOfMarkdown(page));
    expect(complaints).toEqual(['page.md:12: "nobody" (say: name the subject)']);
    expect(textsOfMarkdown(page)[1]).toMatchObject({ line: 3, text: expect.stringContaining('First line second') });
  });

  test('reads strings, templates and JSX, and distinguishes errors', () => {
    const code =
      "import x from 'nobody is here';\nconst a = 'nobody is here'; // nobody is here\nconst b = `${a} is not there`;\n" +
      'throw new RuvLLMError(\'io\', `${a} is nothing without ${b}`);\nconst c = <p title="Nobody">Known beginnings</p>;\n';
    const linesOf = (inErrors: boolean): number[] =>
      textsOfSource('x.tsx', code, { inErrors })
        .filter(({ text }) => complaintsAbout(text).length > 0)
        .map(({ line }) => line);
    expect(linesOf(false)).toEqual([2, 3, 4, 5, 5]);
    expect(linesOf(true)).toEqual([4]);
  });

  test('reads comments and test titles, and leaves code out', () => {
    const code =
      "const a = 'nobody // nobody is here'; // first nobody\n/**\n * What `work` gives: nobody\n * knows.\n */\n" +
      "// line one\n// line nobody two\ntest.each(['nobody'])('accepts %s, for it is nobody', () => expect('nobody is here').toBe(1));\n";
    const texts = [
      { text: 'first nobody', line: 1 },
      { text: 'What `work` gives: nobody knows.', line: 2 },
      { text: 'line one line nobody two', line: 6 },
    ];
    expect(textsOfComments('x.test.ts', code)).toEqual([...texts, { text: 'accepts %s, for it is nobody', line: 8 }]);
    expect(complaintsAbout(texts[1]!.text, ANY_WHAT_CLAUSE)).toHaveLength(2);
    const kernel = '/* What\n * is here. */\n// one\n// two\n@inline\nfunction f(): v128 { return x; } // three\n';
    expect(textsOfComments('a/assembly/x.ts', kernel).map(({ text, line }) => [line, text])).toEqual([
      [1, 'What is here.'],
      [3, 'one two'],
      [6, 'three'],
    ]);
  });

  test('names in code are no prose', () => {
    expect(textsOfSource('x.ts', "const kind = 'witness';", { inErrors: false })).toEqual([]);
  });
});
