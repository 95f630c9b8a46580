// npm run docs:benchmarks: writes docs/benchmarks.md from the recorded runs in docs/benchmarks/. A test compares the result.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { root } from './setup.mjs';

const NOT_RECORDED = 'not recorded';

/** The records of docs/benchmarks/, in the order of the page. */
export function readBenchmarkRecords() {
  const folder = join(root, 'docs/benchmarks');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({ file, ...JSON.parse(readFileSync(join(folder, file), 'utf8')) }))
    .sort((a, b) => a.order - b.order);
}

/** The text of docs/benchmarks.md. */
export async function buildBenchmarksPage(records = readBenchmarkRecords()) {
  const lines = [
    '<!-- Made by npm run docs:benchmarks from docs/benchmarks/*.json: edit those. -->',
    '',
    '# Benchmarks',
    '',
    'Every section names the command that measures it. The figures are single recorded runs, so run the command on your own machine before you rely on them. A dash marks a figure that does not apply or was not recorded.',
    '',
    'The record of each section is a JSON file in [`docs/benchmarks/`](benchmarks/engine.json). It has a field for the JSON line that the bench prints last; in records without that line the field is null.',
    ...records.flatMap(sectionOf),
    '',
  ];
  const options = await resolveConfig(join(root, 'docs/benchmarks.md'));
  return format(lines.join('\n'), { ...options, parser: 'markdown' });
}

function sectionOf({ file, title, command, measures, runs, tables, notes }) {
  return [
    '',
    `## ${title}`,
    '',
    `\`${command}\` ([record](benchmarks/${file}))`,
    '',
    measures,
    '',
    ...runs.map((run) => describeRun(run, runs.length > 1)),
    ...tables.flatMap((table) => ['', ...tableLines(table)]),
    ...(notes.length > 0 ? ['', ...notes.map((note) => `- ${note}`)] : []),
  ];
}

function describeRun({ name, date, commit, machine, recordedIn }, isNamed) {
  const cores = machine.cores === null ? null : `${machine.cores} cores`;
  const parts = [machine.cpu, cores].filter((part) => part !== null);
  const described = parts.length === 0 ? `machine ${NOT_RECORDED}` : parts.join(', ');
  const conditions = machine.conditions === null ? '' : ` (${machine.conditions})`;
  const measured =
    commit === null ? `measured commit ${NOT_RECORDED}, documented in ${recordedIn}` : `commit ${commit}`;
  return `- ${isNamed ? `${name}: ` : ''}${date}; ${described}${conditions}; ${measured}`;
}

function tableLines({ columns, rows }) {
  const line = (cells) => `| ${cells.map((cell) => cell ?? '–').join(' | ')} |`;
  return [line(columns), line(columns.map(() => '-')), ...rows.map(line)];
}

if (process.argv[1] && import.meta.filename === process.argv[1]) {
  const page = await buildBenchmarksPage();
  writeFileSync(join(root, 'docs/benchmarks.md'), page);
  console.log(`docs/benchmarks.md: ${page.split('\n').length} lines`);
}
