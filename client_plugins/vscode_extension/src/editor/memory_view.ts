// Draws the tree of memories in the side bar.

import { EventEmitter, ThemeIcon, type TreeDataProvider, TreeItem, TreeItemCollapsibleState } from "vscode";
import { type MemoryTree, row, type TreeNode } from "../memory_tree.ts";

export class MemoryView implements TreeDataProvider<TreeNode> {
  private readonly tree: MemoryTree;
  private readonly changes = new EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changes.event;

  constructor(tree: MemoryTree) {
    this.tree = tree;
  }

  refresh(): void {
    this.tree.forgetAnswers();
    this.changes.fire(undefined);
  }

  lookAt(fileUri: string | undefined, folderUri: string | undefined): void {
    if (this.tree.lookAt(fileUri, folderUri)) {
      this.changes.fire(undefined);
    }
  }

  async getChildren(node?: TreeNode): Promise<TreeNode[]> {
    return [...(await this.tree.children(node))];
  }

  getTreeItem(node: TreeNode): TreeItem {
    const { label, description, tooltip, icon, id } = row(node);
    const isOpen = node.kind === "group" && (node.name === "file" || node.name === "project");
    const closed = node.kind === "group" ? TreeItemCollapsibleState.Collapsed : TreeItemCollapsibleState.None;
    const item = new TreeItem(label, isOpen ? TreeItemCollapsibleState.Expanded : closed);
    item.description = description;
    // A text, not a MarkdownString: the editor shows it as it is.
    item.tooltip = tooltip || label;
    item.contextValue = node.kind;
    if (id) {
      item.id = id;
    }
    if (icon) {
      item.iconPath = new ThemeIcon(icon);
    }
    if (node.kind === "memory") {
      item.command = { command: "memorySidecar.openMemory", title: "Open", arguments: [{ id: node.memory.id }] };
    }
    return item;
  }
}
