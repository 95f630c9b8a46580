/** Something takes a moment. */
export function Loading({ what }: { what: string }) {
  return (
    <div class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      {what} …
    </div>
  );
}
