import { resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { AddedDocument, NewDocument } from '../../memory/documents/documents.ts';
import type { CommandContext } from '../command.ts';
import type { MemoryClient } from './client-types.ts';
import { describeFile, type DocumentPath, listFolder, readDocumentFile } from './document-files.ts';

export type DocumentSettings = Pick<NewDocument, 'topic' | 'expiresMs'>;

export interface AddReport {
  readonly documents: AddedDocument[];
  readonly removed: string[];
  readonly refused: { readonly name: string; readonly reason: string }[];
}

const emptyReport = (): AddReport => ({ documents: [], removed: [], refused: [] });

/** The outcome of adding a document, in one line. */
function describe({ name, numChunks, numAdded, numRemoved, numKept, isUnchanged }: AddedDocument): string {
  const chunks = `${numChunks} ${numChunks === 1 ? 'chunk' : 'chunks'}`;
  if (isUnchanged) return `unchanged  ${name}: ${chunks}`;
  if (numKept === 0 && numRemoved === 0) return `added      ${name}: ${chunks}`;
  return `updated    ${name}: ${chunks}, ${numAdded} new, ${numKept} kept, ${numRemoved} removed`;
}

/** Adds documents and says what became of each. */
export function createDocumentAdder(client: MemoryClient, { io, output }: CommandContext, settings: DocumentSettings) {
  async function addContent(document: NewDocument, report: AddReport): Promise<void> {
    const added = await client.addDocument!({ ...document, ...settings });
    report.documents.push(added);
    output.lines(describe(added));
  }

  async function addFile(file: DocumentPath, report: AddReport, folder: string | null): Promise<void> {
    if (io.signal.aborted) throw new RuvLLMError('aborted', 'cancelled while adding documents');
    try {
      const content = await readDocumentFile(file);
      await addContent({ name: file.name, content, ...(folder === null ? {} : { folder }) }, report);
    } catch (error) {
      if (!(error instanceof RuvLLMError) || !REFUSALS.has(error.code)) throw error;
      report.refused.push({ name: file.name, reason: error.message });
      output.note(`refused    ${file.name}: ${error.message}`);
    }
  }

  async function removeMissing(folder: string, files: readonly DocumentPath[], report: AddReport): Promise<void> {
    const names = files.map(({ name }) => name);
    const { removed } = await client.call<{ removed: string[] }>('documents.remove-missing', { folder, names });
    report.removed.push(...removed);
    for (const name of removed) output.lines(`removed    ${name}`);
  }

  return {
    /** Text of stdin. */
    addContent,
    async addPath(path: string, report = emptyReport()): Promise<AddReport> {
      await addFile(await describeFile(path), report, null);
      return report;
    },
    /** Adds the files of a folder, those in `only` if given, and removes documents whose files are gone. */
    async addFolder(
      path: string,
      report = emptyReport(),
      only?: (file: DocumentPath) => boolean,
    ): Promise<readonly DocumentPath[]> {
      const folder = resolve(path);
      const files = await listFolder(folder);
      for (const file of files) if (only === undefined || only(file)) await addFile(file, report, folder);
      await removeMissing(folder, files, report);
      return files;
    },
    emptyReport,
  };
}

/** Errors of one file: the others are added all the same. */
const REFUSALS: ReadonlySet<string> = new Set(['invalid_text', 'unsupported', 'limit_exceeded', 'not_found', 'io', 'invalid_option']); // prettier-ignore

export type DocumentAdder = ReturnType<typeof createDocumentAdder>;
