// What the language server is started with. Pure.

/** The settings as the editor gives them; empty texts mean "not set". */
export type Settings = {
  home: string;
  namespace: string;
  hover: boolean;
  codeLens: boolean;
  fileActivity: boolean;
};

/** Return `initializationOptions`; what is not set is left out, since the server has defaults of its own. */
export function initializationOptions({ home, namespace, hover, codeLens, fileActivity }: Settings): object {
  const texts = Object.entries({ home: home.trim(), namespace: namespace.trim() }).filter(([, text]) => text !== "");
  return { hover, codeLens, fileActivity, ...Object.fromEntries(texts) };
}
