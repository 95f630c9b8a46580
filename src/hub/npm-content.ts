import { trimEndOf } from '../core/trim.ts';
import { RuvLLMError } from '../core/errors.ts';

/** A file inside a package, without npm's leading `package/`. */
export interface PackageFile {
  readonly path: string;
  readonly sizeBytes: number;
}

function names(files: readonly PackageFile[]): string {
  const paths = files.slice(0, 12).map((file) => file.path);
  return paths.join(', ') + (files.length > 12 ? ` and ${files.length - 12} more` : '');
}

/** The number at the end of model.part, model.part2, x.gguf.part01 …; 0 if there is none. */
function partNumber(path: string): number {
  return Number(path.slice(path.lastIndexOf('.part')).match(/\d+/g)?.at(-1) ?? 0);
}

function isPart(path: string): boolean {
  return /\.part[^/]*$/i.test(path);
}

function orderParts(parts: readonly PackageFile[], spec: string): PackageFile[] {
  const ordered = [...parts].sort((a, b) => partNumber(a.path) - partNumber(b.path) || (a.path < b.path ? -1 : 1));
  const first = partNumber(ordered[0]!.path);
  for (const [index, part] of ordered.entries()) {
    if (partNumber(part.path) === first + index) continue;
    throw new RuvLLMError('not_found', `${spec}: part ${first + index} is missing (it has: ${names(ordered)})`);
  }
  if (first > 1)
    throw new RuvLLMError('not_found', `${spec}: the parts start at ${first}, not 1 (it has: ${names(ordered)})`);
  return ordered;
}

/**
 * The files of a package that make up the model, in order: the named one, else its only GGUF, else its parts. If the
 * model spans several packages only parts count: GGUF files cannot be concatenated.
 */
export function choosePackageFiles(
  files: readonly PackageFile[],
  request: { readonly file: string | null; readonly isOneOfSeveral: boolean },
  spec: string,
): readonly PackageFile[] {
  if (request.file !== null) {
    const match = files.find((file) => file.path === request.file);
    if (match === undefined)
      throw new RuvLLMError('not_found', `${spec} has no file ${request.file} (it has: ${names(files)})`);
    return [match];
  }
  const models = request.isOneOfSeveral ? [] : files.filter((file) => /\.gguf$/i.test(file.path));
  if (models.length === 1) return models;
  if (models.length > 1) {
    throw new RuvLLMError(
      'invalid_option',
      `${spec} has ${models.length} models; choose one by adding #path: ${names(models)}`,
    );
  }
  const parts = files.filter((file) => isPart(file.path));
  if (parts.length === 0) {
    const what = request.isOneOfSeveral ? 'no .part file' : 'neither a .gguf nor a .part file';
    throw new RuvLLMError('not_found', `${spec} has ${what} (it has: ${names(files)})`);
  }
  return orderParts(parts, spec);
}

/** A name for a model joined from parts: the common part of the packages' names. */
export function joinedFileName(packageNames: readonly string[]): string {
  const bases = packageNames.map((name) => name.slice(name.lastIndexOf('/') + 1));
  let common = bases[0]!;
  for (const base of bases) while (!base.startsWith(common)) common = common.slice(0, -1);
  const named = trimEndOf(trimEndOf(common, '0123456789'), '-_.').replace(/part$/i, '');
  const stem = trimEndOf(named, '-_.');
  return `${stem === '' ? 'model' : stem}.gguf`;
}
