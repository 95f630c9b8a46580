import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pick, type RecallSet } from './sets.ts';

const MIN_WORDS = 6;
const MAX_CHARS = 1500;
const COMMENT = /^\/\*\*([\s\S]*?)\*\/\n(?=export )/gm;

/** Exported declarations without their comments, which are the questions. */
export function readCode(folder: string, numTexts: number, numQuestions: number): RecallSet {
  const declarations: { text: string; code: string }[] = [];
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!file.endsWith('.ts') || /\.(test|contract)\.ts$/.test(file)) continue;
    const source = readFileSync(join(folder, file), 'utf8');
    for (const { 0: comment, 1: words = '', index } of source.matchAll(COMMENT)) {
      const text = words.replace(/\s*\n?\s*\*?\s+/g, ' ').trim();
      const code = source.slice(index + comment.length, index + comment.length + MAX_CHARS).split(/\n}\n|;\n\n/)[0]!;
      declarations.push({ text, code: code.replace(/\/\*\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '') });
    }
  }
  const kept = pick(declarations, numTexts);
  const questions = kept.flatMap(({ text }, evidence) =>
    text.split(' ').length >= MIN_WORDS ? [{ text, evidence }] : [],
  );
  return {
    name: 'code',
    texts: kept.map(({ code }) => code),
    questions: pick(questions, numQuestions),
  };
}
