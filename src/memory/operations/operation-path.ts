/** The route of an operation. In a file of its own, because clients need no schemas. */
export function operationPath({ name }: { readonly name: string }): string {
  return `/admin/memory/${name.replace(/^memory\./, '').replaceAll('.', '/')}`;
}
