// What the compiler of Go says of each name of a module: `scripts/measure-calls go` runs it and packs its lines with scip.py.
//
// Arguments: the folder of the module, and its path as in go.mod. It prints a line for each name: file, line and columns from 0,
// whether it is defined there, and what it stands for, which is the place of its definition.
package main

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
)

type printer struct {
	to   *bufio.Writer
	fset *token.FileSet
	root string
}

func (p *printer) name(at token.Pos, name string, object types.Object, defines bool) {
	if f, ok := object.(*types.Func); ok {
		object = f.Origin()
	} else if _, ok := object.(*types.TypeName); !ok {
		return
	}
	place, of := p.fset.Position(at), p.fset.Position(object.Pos())
	file, err := filepath.Rel(p.root, place.Filename)
	if err != nil || strings.HasPrefix(file, "..") {
		return
	}
	kind, from := "uses", place.Column-1
	if defines {
		kind = "defines"
	}
	symbol := fmt.Sprintf("%s:%d:%d", of.Filename, of.Line, of.Column)
	fmt.Fprintf(p.to, "%s\t%d\t%d\t%d\t%s\t%s\n", filepath.ToSlash(file), place.Line-1, from, from+len(name), kind, symbol)
}

func (p *printer) folder(folder, path string, imports types.Importer) {
	found, err := build.ImportDir(folder, 0)
	if err != nil {
		return
	}
	var files []*ast.File
	for _, name := range found.GoFiles {
		if file, err := parser.ParseFile(p.fset, filepath.Join(folder, name), nil, 0); err == nil {
			files = append(files, file)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	// What is not understood is not said.
	config := types.Config{Importer: imports, FakeImportC: true, Error: func(error) {}}
	config.Check(path, p.fset, files, info)
	for ident, object := range info.Defs {
		if object != nil {
			p.name(ident.Pos(), ident.Name, object, true)
		}
	}
	for ident, object := range info.Uses {
		p.name(ident.Pos(), ident.Name, object, false)
	}
}

func main() {
	root, module := os.Args[1], os.Args[2]
	fset := token.NewFileSet()
	p := &printer{bufio.NewWriter(os.Stdout), fset, root}
	defer p.to.Flush()
	imports := importer.ForCompiler(fset, "source", nil)
	filepath.WalkDir(root, func(folder string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || name == "vendor" || folder != root && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		below, _ := filepath.Rel(root, folder)
		p.folder(folder, filepath.ToSlash(filepath.Join(module, below)), imports)
		return nil
	})
}
