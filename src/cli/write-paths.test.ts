// Every text that reaches the screen passes src/cli/output.ts; whoever writes by itself is named here, with why.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const WRITERS: Readonly<Record<string, string>> = {
  'output.ts': 'this is it',
  'report-error.ts': 'errors, escaped there',
  'run-cli.ts': 'help, which is our own text, and documents',
  'progress.ts': 'a bar that is drawn over itself; labels are escaped there',
  'chat/repl.ts': 'the modes of the terminal, and line breaks',
  'run-process.ts': 'the streams themselves',
  'main.ts': 'the version',
  'commands/serve.ts': 'the log, as documents',
};

const root = dirname(fileURLToPath(import.meta.url));

test('no other file writes to the screen', () => {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'));
  const writers = files.filter((file) =>
    /\bconsole\.|\bprocess\.std|\b(?:stdout|stderr|sink|screen|stream)\.write\(/.test(
      readFileSync(join(root, file), 'utf8'),
    ),
  );
  // These write to files of the user's.
  const toFiles = ['memory/transfer.ts', 'learning/change-actions.ts'];
  expect(writers.filter((file) => !toFiles.includes(file)).sort()).toEqual(Object.keys(WRITERS).sort());
});
