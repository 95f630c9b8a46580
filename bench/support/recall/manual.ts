import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pick, type RecallSet } from './sets.ts';

const MIN_CHARS = 120;
const MAX_CHARS = 2000;

/** The sections of the documentation without their headings, which are the questions. */
export function readManual(folders: readonly string[], numQuestions: number): RecallSet {
  const texts: string[] = [];
  const questions: { text: string; evidence: number }[] = [];
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  for (const file of files.sort()) {
    // The log and the API reference repeat other pages.
    if (!file.endsWith('.md') || /log\.md$|\/api\//.test(file)) continue;
    const [, ...sections] = readFileSync(file, 'utf8').split(/^#+ /m);
    for (const section of sections) {
      const [heading = '', ...lines] = section.split('\n');
      const body = lines.join('\n').trim();
      if (body.length < MIN_CHARS) continue;
      if (heading.split(' ').length >= 2) questions.push({ text: heading.replaceAll('`', ''), evidence: texts.length });
      texts.push(body.slice(0, MAX_CHARS));
    }
  }
  return { name: 'manual', texts, questions: pick(questions, numQuestions) };
}
