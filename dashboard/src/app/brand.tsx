/** The logo and product name. */
export function Brand() {
  return (
    <div class="brand">
      <svg class="icon" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" fill="var(--accent)" />
        <path d="M9 23V9h7.5a4.5 4.5 0 0 1 1.2 8.8L23 23h-5l-4.4-5H13v5z" fill="var(--accent-ink)" />
      </svg>
      <span>{'RuvLLM'}</span>
    </div>
  );
}
