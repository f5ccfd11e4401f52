"""The data structures of every part: nodes, ops, types, sizes, graphs and contracts."""

from .dtypes import BOOL as BOOL
from .dtypes import INT as INT
from .dtypes import Array as Array
from .graph import Graph as Graph
from .literal import Literal as Literal
from .names import Hidden as Hidden
from .node import Node as Node
from .node import full_like as full_like
from .node import reached as reached
from .node import toposort as toposort
from .node import unwrap as unwrap
from .op import Op as Op
from .op import Trait as Trait
from .sizes import Expression as Expression
from .sizes import Shape as Shape
from .sizes import Size as Size
from .trace import Rule as Rule
from .types import DType as DType
from .types import TensorType as TensorType
from .types import TupleType as TupleType
from .types import Type as Type
